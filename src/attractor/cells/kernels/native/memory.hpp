// Memory that is kept from call to call: fresh pages cost more than the arithmetic on them.
#pragma once

#include <cstddef>

namespace attractor {

// At least this many bytes, aligned to a cache line; throws std::bad_alloc.
void* take(size_t bytes);
void give(void* memory);

// What one call takes, given back at its end.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  ~Workspace();

  template <class S>
  S* array(size_t count) {
    return static_cast<S*>(raw(count * sizeof(S)));
  }

  // The same, filled with zeros.
  template <class S>
  S* zeros(size_t count) {
    S* made = array<S>(count);
    __builtin_memset(made, 0, count * sizeof(S));
    return made;
  }

 private:
  void* raw(size_t bytes);
  void* taken_[64];
  int count_ = 0;
};

}  // namespace attractor
