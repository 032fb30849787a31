#include "threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace attractor {
namespace {

constexpr int kSpins = 4000;  // a few microseconds, longer than most waits

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

template <class Done>
void wait_until(Done done) {
  for (int spins = 0; !done(); spins++)
    if (spins < kSpins)
      pause();
    else
      sched_yield();
}

struct Job {
  Work work;
  void* context;
  Meeting* meeting;
  std::atomic<int> left;
};

class Pool {
 public:
  void run(int wanted, Work work, void* context) {
    std::unique_lock<std::mutex> alone(busy_, std::try_to_lock);
    if (wanted < 2 || !alone.owns_lock()) {
      Meeting nobody(1);
      return work(context, 0, 1, nobody);
    }
    grow(wanted - 1);
    if (wanted > size_ + 1) wanted = size_ + 1;
    Meeting meeting(wanted);
    Job job{work, context, &meeting, {wanted - 1}};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      count_ = wanted;
      posted_++;
    }
    wake_.notify_all();
    work(context, 0, wanted, meeting);
    wait_until([&] { return job.left.load(std::memory_order_acquire) == 0; });
  }

 private:
  // Up to so many threads, or as many as the system gives: the work is done by fewer too.
  void grow(int size) {
    try {
      for (; size_ < size; size_++)
        std::thread([this, index = size_ + 1, seen = posted_] { serve(index, seen); }).detach();
    } catch (const std::exception&) {
    }
  }

  void serve(int index, unsigned seen) {
    for (;;) {
      Job* job = nullptr;
      int count;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return posted_ != seen; });
        seen = posted_;
        count = count_;
        if (index < count) job = job_;  // otherwise it may be over by now
      }
      if (job) {
        job->work(job->context, index, count, *job->meeting);
        job->left.fetch_sub(1, std::memory_order_release);
      }
    }
  }

  std::mutex busy_, mutex_;
  std::condition_variable wake_;
  Job* job_ = nullptr;
  unsigned posted_ = 0;
  int count_ = 0, size_ = 0;
};

std::atomic<Pool*> current{nullptr};

// Threads do not survive a fork: the child makes its own pool, and leaves the old one alone.
Pool& pool() {
  static bool watched = [] {
    pthread_atfork(nullptr, nullptr, [] { current.store(new Pool); });
    current.store(new Pool);
    return true;
  }();
  (void)watched;
  return *current.load();
}

}  // namespace

void Meeting::wait() {
  if (count_ == 1) return;
  int round = round_.load(std::memory_order_acquire);
  if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    waiting_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
  } else {
    wait_until([&] { return round_.load(std::memory_order_acquire) != round; });
  }
}

void together(int wanted, Work work, void* context) { pool().run(wanted, work, context); }

}  // namespace attractor
