// Layer normalisation of blocks: `rows` neighbours of `n` numbers, each padded, as one vector.
#pragma once

#include "vector.hpp"

namespace attractor::ATTRACTOR_PATH {

// z becomes (z - its mean) / its standard deviation, of which one over is returned.
template <class S>
inline S normalise(S* z, int64_t n, int64_t rows = 1) {
  int64_t width = padded<S>(n);
  S sum = 0, square = 0;
  for (int64_t r = 0; r < rows; r++) {
    Vector<S> part{};  // what is behind the numbers is zero
    for (int64_t i = 0; i < width; i += kWidth<S>) part += load(z + r * width + i);
    sum += total<S>(part);
  }
  S mean = sum / S(n * rows);
  for (int64_t r = 0; r < rows; r++) {
    Vector<S> part{};
    for (int64_t i = 0; i < width; i += kWidth<S>) {
      Vector<S> v = load(z + r * width + i) - mean;
      for (int64_t lane = n - i; lane < kWidth<S>; lane++) v[lane] = 0;
      part += v * v;
      store(z + r * width + i, v);
    }
    square += total<S>(part);
  }
  S scale = S(1) / S(__builtin_sqrt(square / S(n * rows) + S(1e-5)));
  for (int64_t i = 0; i < rows * width; i += kWidth<S>) store(z + i, load(z + i) * scale);
  return scale;
}

// From the gradient of that, which is zero behind the numbers, to the gradient of z.
template <class S>
inline void normalise_back(const S* normal, S scale, S* d, int64_t n, int64_t rows = 1) {
  int64_t width = padded<S>(n);
  Vector<S> sum{}, along{};
  for (int64_t i = 0; i < rows * width; i += kWidth<S>)
    sum += load(d + i), along += load(d + i) * load(normal + i);
  S mean = total<S>(sum) / S(n * rows), share = total<S>(along) / S(n * rows);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < width; i += kWidth<S>) {
      int64_t at = r * width + i;
      Vector<S> v = scale * (load(d + at) - mean - share * load(normal + at));
      for (int64_t lane = n - i; lane < kWidth<S>; lane++) v[lane] = 0;
      store(d + at, v);
    }
}

}  // namespace attractor::ATTRACTOR_PATH
