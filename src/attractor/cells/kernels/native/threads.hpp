// A few threads that wait for work. Whoever comes while they are busy works alone, which gives the
// same numbers: nothing here depends on how many threads there are.
#pragma once

#include <atomic>

namespace attractor {

// Where the threads of one piece of work meet.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  void wait();

 private:
  const int count_;
  std::atomic<int> waiting_{0}, round_{0};
};

typedef void (*Work)(void* context, int index, int count, Meeting& meeting);

// Run `work` in up to `wanted` threads, this one included, and wait until all are done.
void together(int wanted, Work work, void* context);

}  // namespace attractor
