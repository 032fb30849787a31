#include "memory.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

namespace attractor {
namespace {

constexpr size_t kLine = 64, kHuge = size_t(2) << 20;
#ifdef ATTRACTOR_EXACT  // for tools that watch each access
constexpr size_t kPage = 1, kKept = 0;
#else
constexpr size_t kPage = 4096, kKept = size_t(1) << 30;
#endif

struct Pool {
  std::mutex mutex;
  std::multimap<size_t, void*> free;  // by size
  std::map<void*, size_t> sizes;
  size_t kept = 0;
};

// Never destroyed: tensors may give memory back while the process ends.
Pool& pool() {
  static Pool* made = [] {
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); },
                   [] { pool().mutex.unlock(); });
    return new Pool;
  }();
  return *made;
}

void* fresh(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, bytes < kHuge ? kLine : kHuge, bytes)) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= kHuge) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace

void* take(size_t bytes) {
  size_t unit = bytes < kHuge ? kPage : kHuge;
  bytes = bytes ? (bytes + unit - 1) / unit * unit : unit;
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  auto found = p.free.lower_bound(bytes);
  void* memory;
  if (found != p.free.end() && found->first <= bytes + bytes / 2) {
    memory = found->second;
    p.kept -= found->first;
    p.free.erase(found);
  } else {
    memory = fresh(bytes);
    try {
      p.sizes[memory] = bytes;
    } catch (...) {
      std::free(memory);
      throw;
    }
  }
  return memory;
}

void give(void* memory) {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  size_t bytes = p.sizes[memory];
  try {
    p.free.emplace(bytes, memory);
  } catch (const std::bad_alloc&) {  // no room to remember it by
    p.sizes.erase(memory);
    std::free(memory);
    return;
  }
  p.kept += bytes;
  while (p.kept > kKept) {  // the largest goes back first
    auto largest = std::prev(p.free.end());
    p.kept -= largest->first;
    p.sizes.erase(largest->second);
    std::free(largest->second);
    p.free.erase(largest);
  }
}

Workspace::~Workspace() {
  while (count_) give(taken_[--count_]);
}

void* Workspace::raw(size_t bytes) {
  if (count_ == 64) throw std::bad_alloc();
  void* made = take(bytes);
  taken_[count_++] = made;
  return made;
}

}  // namespace attractor
