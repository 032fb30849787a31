#include "threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace attractor {
namespace {

constexpr uint64_t kOver = ~uint64_t(0);  // the ticket of a crew that is dismissed
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

bool Crew::take(uint64_t ticket, int index) {
  int first = int(ticket >> 16 & 0xffff), last = int(ticket & 0xffff);
  if (first == last) return false;
  Piece piece = piece_.load(std::memory_order_relaxed);
  void* context = context_.load(std::memory_order_relaxed);
  uint64_t rest = index ? ticket - 1 : ticket + 0x10000;
  if (!ticket_.compare_exchange_strong(ticket, rest, std::memory_order_acq_rel)) return true;
  piece(context, index ? last - 1 : first, index);
  left_.fetch_sub(1, std::memory_order_release);
  return true;
}

void Crew::run(int parts, Piece piece, void* context) {
  piece_.store(piece, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  left_.store(parts, std::memory_order_relaxed);
  uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(job << 32 | uint64_t(parts), std::memory_order_release);
  while (take(ticket_.load(std::memory_order_acquire), 0)) {
  }
  wait_until([&] { return left_.load(std::memory_order_acquire) == 0; });
}

void Crew::help(int index) {
  for (uint64_t ticket = 0; ticket != kOver; take(ticket, index))
    wait_until([&] {
      ticket = ticket_.load(std::memory_order_acquire);
      return ticket == kOver || (ticket >> 16 & 0xffff) != (ticket & 0xffff);
    });
}

void Crew::dismiss() { ticket_.store(kOver, std::memory_order_release); }

void together(int wanted, Work work, void* context) { pool().run(wanted, work, context); }

}  // namespace attractor
