// What this processor can do, asked of itself: compilers' own answers need their runtime library.
#pragma once

#include <cstring>
#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace attractor {

#if defined(__x86_64__)
// Which registers the operating system saves when it turns to another process.
inline unsigned saved_registers() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

inline bool has(unsigned word, std::initializer_list<int> bits) {
  for (int bit : bits)
    if (!(word >> bit & 1)) return false;
  return true;
}

inline bool runs_here(const char* name) {
  const bool wide = !strcmp(name, "avx512");
  if (!wide && strcmp(name, "avx2")) return true;
  unsigned a, b, c, d;
  // fused products, the system's own saving of registers, AVX
  if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, {12, 27, 28})) return false;
  if (!has(saved_registers(), {1, 2}) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!wide) return has(b, {5});
  // AVX-512 F, DQ and VL, and its registers: masks, upper halves, upper sixteen
  return has(saved_registers(), {5, 6, 7}) && has(b, {16, 17, 31});
}
#else
inline bool runs_here(const char*) { return true; }
#endif

}  // namespace attractor
