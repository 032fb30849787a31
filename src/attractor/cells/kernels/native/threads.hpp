// A few threads that wait for work. Whoever comes while they are busy works alone, which gives the
// same numbers: nothing here depends on how many threads there are.
#pragma once

#include <atomic>
#include <cstdint>

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

// One thread, the leader, shares out pieces of its work; the others help until it dismisses them.
// It takes them from one end and they from the other, so that each has much the same ones each time
// and finds them in its cache. Nobody waits for a helper that has not come: the leader goes on.
class Crew {
 public:
  explicit Crew(int count) : count_(count) {}
  int count() const { return count_; }
  void help(int index);
  void dismiss();

  // Call f(first, last, thread) for ranges that make up all of `pieces`, and wait for them.
  template <class F>
  void share(int64_t pieces, F f) {
    int parts = int(pieces < 8 * count_ ? pieces : 8 * count_);
    auto call = [&](int part, int thread) {
      f(pieces * part / parts, pieces * (part + 1) / parts, thread);
    };
    typedef decltype(call) One;
    run(parts, [](void* one, int part, int i) { (*static_cast<One*>(one))(part, i); }, &call);
  }

 private:
  typedef void (*Piece)(void* context, int part, int thread);
  void run(int parts, Piece piece, void* context);
  bool take(uint64_t ticket, int index);

  const int count_;
  std::atomic<Piece> piece_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int> left_{0};
  // which job, and which of its parts are not taken: from the first to before the last
  alignas(64) std::atomic<uint64_t> ticket_{0};
};

typedef void (*Work)(void* context, int index, int count, Meeting& meeting);

// Run `work` in up to `wanted` threads, this one included, and wait until all are done.
void together(int wanted, Work work, void* context);

}  // namespace attractor
