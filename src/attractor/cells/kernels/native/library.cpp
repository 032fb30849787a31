// The C interface, and the choice of the instruction set.
#include <cstdlib>
#include <cstring>

#include "call.hpp"
#include "memory.hpp"
#include "processor.hpp"

namespace attractor {

// The paths in this library, best first: those that it was compiled with.
#define ATTRACTOR_DECLARE(name) \
  namespace name {              \
  extern const Path path;       \
  }

#ifdef ATTRACTOR_AVX512
ATTRACTOR_DECLARE(avx512)
#endif
#ifdef ATTRACTOR_AVX2
ATTRACTOR_DECLARE(avx2)
#endif
#ifdef ATTRACTOR_NEON
ATTRACTOR_DECLARE(neon)
#endif
ATTRACTOR_DECLARE(plain)

namespace {

const Path* const kPaths[] = {
#ifdef ATTRACTOR_AVX512
    &avx512::path,
#endif
#ifdef ATTRACTOR_AVX2
    &avx2::path,
#endif
#ifdef ATTRACTOR_NEON
    &neon::path,
#endif
    &plain::path};

const Path* chosen = nullptr;

const Kernel* find(const char* name) {
  for (int i = 0; chosen && i < chosen->count; i++)
    if (!strcmp(chosen->kernels[i].name, name)) return &chosen->kernels[i];
  return nullptr;
}

}  // namespace
}  // namespace attractor

using namespace attractor;

#pragma GCC visibility push(default)
extern "C" {

// Choose a path by name, or the best one if the name is empty. Returns its name, or null if it is
// not in this library or does not run on this processor.
const char* attractor_choose(const char* name) {
  for (const Path* p : kPaths)
    if ((!*name || !strcmp(p->name, name)) && runs_here(p->name)) return (chosen = p)->name;
  return nullptr;
}

// To be checked against what the caller takes them to be.
int64_t attractor_version() { return kVersion; }
int64_t attractor_call_size() { return sizeof(Call); }

// Run a kernel: 1 is there, 2 is back, 0 only asks for the width of the tape, in numbers, which is
// returned. -1 means that there is no such kernel, -2 that memory has run out.
int64_t attractor_run(const char* kernel, int way, const Call* call) {
  const Kernel* found = find(kernel);
  if (!found) return -1;
  try {
    return found->run(*call, Way(way));
  } catch (...) {  // no exception leaves a C function, and memory is all that kernels ask for
    return -2;
  }
}

// Run a rule over the tensors of a network: 0 if all went well, 1 if a gradient is not finite and
// nothing was changed, -1 if there is no such rule, -2 if memory has run out, and nothing was changed.
int64_t attractor_sweep(const char* rule, const Sweep* sweep) {
  try {
    for (int i = 0; chosen && i < chosen->sweeper_count; i++)
      if (!strcmp(chosen->sweepers[i].name, rule)) return chosen->sweepers[i].run(*sweep);
  } catch (...) {
    return -2;
  }
  return -1;
}

// Memory that is kept from call to call; null if there is none left.
void* attractor_take(size_t bytes) {
  try {
    return take(bytes);
  } catch (...) {
    return nullptr;
  }
}

void attractor_give(void* memory) { give(memory); }
}
#pragma GCC visibility pop
