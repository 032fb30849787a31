// Products of matrices. A right factor is packed in panels of two vectors, one row after another;
// rows of the left factor are taken as many at a time as fit in registers. Nothing has a tail:
// what is written is padded to whole vectors. The sum of each number runs over k in order, however
// rows are grouped, so that results do not depend on how many threads share the rows.
#pragma once

#include "threads.hpp"
#include "vector.hpp"

namespace attractor::ATTRACTOR_PATH {

// How many numbers `pack` writes for K rows of N columns.
template <class S>
inline int64_t packed_size(int64_t K, int64_t N) {
  return K * padded<S>(N);
}

// c (M rows of V vectors) = or += a (M rows of K) times one panel. a[i][k] is `row` i + `next` k.
template <int M, int V, bool Add, class S>
inline void tile(const S* a, int64_t row, int64_t next, const S* panel, int64_t K, S* c,
                 int64_t stride) {
  constexpr int W = kWidth<S>;
  Vector<S> sum[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; i++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) sum[i][v] = Add ? load(c + i * stride + v * W) : Vector<S>{};
  for (int64_t k = 0; k < K; k++) {
    Vector<S> b[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) b[v] = load(panel + (k * V + v) * W);
#pragma GCC unroll 16
    for (int i = 0; i < M; i++)
#pragma GCC unroll 8
      for (int v = 0; v < V; v++) sum[i][v] += a[i * row + k * next] * b[v];
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; i++)
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) store(c + i * stride + v * W, sum[i][v]);
}

template <int V, bool Add, int M = kRows, class S>
inline void tile_rows(int rows, const S* a, int64_t row, int64_t next, const S* panel, int64_t K,
                      S* c, int64_t stride) {
  if (rows == M) return tile<M, V, Add>(a, row, next, panel, K, c, stride);
  if constexpr (M > 1) tile_rows<V, Add, M - 1>(rows, a, row, next, panel, K, c, stride);
}

// One row times several panels at once, to have enough sums under way: C = or += a P.
template <bool Add, class S>
inline void one_row(const S* a, const S* packed, int64_t K, int64_t N, S* c) {
  constexpr int W = kWidth<S>, P = 4;
  int64_t n = 0;
  for (; n + 2 * P * W <= N; n += 2 * P * W) {
    Vector<S> sum[2 * P];
#pragma GCC unroll 16
    for (int v = 0; v < 2 * P; v++) sum[v] = Add ? load(c + n + v * W) : Vector<S>{};
    for (int64_t k = 0; k < K; k++) {
      const S* b = packed + n * K + k * 2 * W;
#pragma GCC unroll 16
      for (int v = 0; v < 2 * P; v++) sum[v] += a[k] * load(b + (v / 2) * 2 * W * K + (v % 2) * W);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 2 * P; v++) store(c + n + v * W, sum[v]);
  }
  for (; n + 2 * W <= N; n += 2 * W) tile<1, 2, Add>(a, 0, 1, packed + n * K, K, c + n, 0);
  if (n < N) tile<1, 1, Add>(a, 0, 1, packed + n * K, K, c + n, 0);
}

// C (rows of N, whole vectors) = or += A (rows of K) times the packed matrix.
template <bool Add, class S>
[[gnu::noinline]] void multiply(const S* a, int64_t row, int64_t rows, const S* packed, int64_t K,
                                int64_t N, S* c, int64_t stride) {
  constexpr int W = kWidth<S>;
  if (rows == 1) return one_row<Add>(a, packed, K, N, c);
  int64_t groups = ceil_div(rows, kRows);
  for (int64_t n = 0; n < N; n += 2 * W)
    for (int64_t g = 0; g < groups; g++) {
      int64_t first = rows * g / groups, count = rows * (g + 1) / groups - first;
      const S *from = a + first * row, *panel = packed + n * K;
      S* to = c + first * stride + n;
      if (n + 2 * W <= N)
        tile_rows<2, Add>(int(count), from, row, 1, panel, K, to, stride);
      else
        tile_rows<1, Add>(int(count), from, row, 1, panel, K, to, stride);
    }
}

#ifdef ATTRACTOR_EXACT  // for tools that watch each access
constexpr int64_t kShared = 1, kUnits = 1;
#else
constexpr int64_t kShared = 50000;  // products of numbers that are worth a thread's while
constexpr int64_t kUnits = 32;      // for each thread that shares them, at least
#endif

// The same by a crew, if there is one and it is worth its while: its threads share the panels.
template <bool Add, class S>
void share_product(Crew* crew, const S* a, int64_t row, int64_t rows, const S* packed, int64_t K,
                   int64_t N, S* c, int64_t stride) {
  if (!crew || rows * K * N < crew->count() * kShared)
    return multiply<Add>(a, row, rows, packed, K, N, c, stride);
  constexpr int W = 8 * kWidth<S>;  // what one row is multiplied by at once
  crew->share(ceil_div(N, W), [&](int64_t first, int64_t last, int) {
    first *= W, last = least(last * W, N);
    multiply<Add>(a, row, rows, packed + first * K, K, last - first, c + first, stride);
  });
}

// D (rows of N) += L^T R for many rows at once: what a product gives its weights. The rows of R
// are already in panels; those of L are picked as they come. Columns first to last of L are done.
template <class S>
[[gnu::noinline]] void outer(const S* left, int64_t row, int64_t first, int64_t last,
                             const S* panels, int64_t rows, int64_t N, S* d, S* scratch) {
  constexpr int W = kWidth<S>;
  for (int64_t m = first; m < last; m += kRows) {
    int count = int(least(kRows, last - m));
    for (int64_t r = 0; r < rows; r++) {
      S* to = scratch + r * kRows;
      if (count == kRows)
        memcpy(to, left + r * row + m, kRows * sizeof(S));
      else
        memcpy(to, left + r * row + m, count * sizeof(S));
    }
    for (int64_t n = 0; n < N; n += 2 * W) {
      const S* panel = panels + n * rows;
      if (n + 2 * W <= N)
        tile_rows<2, true>(count, scratch, 1, kRows, panel, rows, d + m * N + n, N);
      else
        tile_rows<1, true>(count, scratch, 1, kRows, panel, rows, d + m * N + n, N);
    }
  }
}

}  // namespace attractor::ATTRACTOR_PATH
