// What a call of the library says: sizes, numbers and memory. `native.py` has the same fields.
// All arrays are contiguous, in the type that `bytes` says, and may be misaligned.
#pragma once

#include <cstdint>

#include "optimisers/sweep.hpp"

namespace attractor {

constexpr int64_t kVersion = 3;  // of what kernels there are and take; `native.py` has it too
constexpr int kSizes = 8, kNumbers = 8, kWeights = 26, kStates = 10;
// Where among the weights the scale and shift of each layer norm are: those of what the first,
// second and third matrix on the state makes, and that of the cell state where it is read.
constexpr int kNorms = 18, kMemoryNorm = 24;

struct Call {
  int32_t bytes;    // of a number: 4 or 8
  int32_t threads;  // at most
  int64_t steps, batch, rows;  // rows: of all steps together
  const int64_t* running;      // sequences that run at each step, falling; null means all
  int64_t size[kSizes];        // inputs, units, and what else the cell has
  double number[kNumbers];     // constants of the cell
  const void* x;               // (rows, inputs)
  const void* weight[kWeights];
  const void* state[kStates];  // (batch, ...)
  const void* constants;       // one number per sequence, or null
  // Zoneout: how much of each state is kept from before, (rows, ...) or the same everywhere.
  const void* keep[kStates];
  double keep_rate[kStates];
  const void* noise;           // (rows, ...) that was drawn beforehand, or null
  void* tape;                  // (rows, tape width) for the way back, or null
  void* output;                // (rows, ...)
  void* last[kStates];         // the state after the last step of each sequence, (batch, ...)
  void* every[kStates];        // the state after each step, (rows, ...), or null
  // On the way back: gradients, any of which may be null.
  const void* d_output;
  const void* d_last[kStates];
  const void* d_every[kStates];
  void* d_x;
  void* d_weight[kWeights];
  void* d_state[kStates];
};

enum class Way : int { nowhere, there, back };

// One cell in one instruction set. It returns the width of its tape, also without going anywhere.
struct Kernel {
  const char* name;
  int64_t (*run)(const Call&, Way);
};

struct Path {
  const char* name;
  const Kernel* kernels;
  int count;
  const Sweeper* sweepers;
  int sweeper_count;
};

}  // namespace attractor
