// What a sweep over the parameters of a network says. `optimisers/sweep.py` has the same fields.
#pragma once

#include <cstdint>

namespace attractor {

struct Swept {  // one tensor
  int64_t size;
  void* param;
  const void* grad;
  void* state[4];     // as large as the parameter, or null
  void* shared[3];    // one number each, of which the first counts updates, or null
  const void* rates;  // of each coordinate, or null
  double sign;        // -1 to go up the gradient
  double rate, decay, scale;  // scale: of its steps
  double share;       // of a step that is taken, which a rule may lower before its sweep
};

struct Sweep {
  int32_t bytes, threads;
  int64_t count;
  Swept* tensors;
  double number[24];  // of the rule
};

// A rule in one instruction set. It returns 0 if all went well, or 1 if a gradient is not finite
// and nothing was changed.
struct Sweeper {
  const char* name;
  int64_t (*run)(const Sweep&);
};

}  // namespace attractor
