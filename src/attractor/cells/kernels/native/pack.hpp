// A weight matrix in the panels that products read, a panel at a time, so that threads share them.
#pragma once

#include <utility>

#include "cell.hpp"

namespace attractor::ATTRACTOR_PATH {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ATTRACTOR_SHUFFLES  // in one instruction, where the compiler is not too old
#endif
#endif

// The numbers of two rows at which bit h of the column is not that of the row change places.
template <int h, class V, std::size_t... I>
inline void exchange(V& a, V& b, std::index_sequence<I...>) {
#ifdef ATTRACTOR_SHUFFLES
  constexpr int W = sizeof...(I);
  V first = __builtin_shufflevector(a, b, (I & h ? W + I - h : I)...);
  b = __builtin_shufflevector(a, b, (I & h ? W + I : I + h)...);
  a = first;
#else
  auto swap = [&](int i) {
    if (i & h) return;
    auto kept = a[i + h];
    a[i + h] = b[i], b[i] = kept;
  };
  (swap(int(I)), ...);
#endif
}

// As many rows as a vector is wide: rows become columns.
template <int h = 1, class S>
inline void transpose(Vector<S>* rows) {
  constexpr int W = kWidth<S>;
#pragma GCC unroll 16
  for (int i = 0; i < W; i++)
    if (!(i & h)) exchange<h>(rows[i], rows[i + h], std::make_index_sequence<W>());
  if constexpr (2 * h < W) transpose<2 * h, S>(rows);
}

// Some neighbouring rows of a weight, of which the first makes number n of a record's sums, a whole
// number of vectors; what is more than they are is padding.
struct Rows {
  int64_t first, count;
};
template <class S>
inline Rows rows_of(const Link<S>& l, int64_t n) {
  int64_t row = 0;
  for (int b = 0;; row += l.to[b++].size) {
    int64_t unit = n + l.to[0].offset - l.to[b].offset;
    if (unit < padded<S>(l.to[b].size)) return {row + unit, l.to[b].size - unit};
  }
}

template <class S>
inline int64_t panels_ahead(const Link<S>& l) {
  return ceil_div(l.rows(), 2 * kWidth<S>);
}
template <class S>
inline int64_t panels_back(const Link<S>& l) {
  return ceil_div(l.source.size, 2 * kWidth<S>);
}

// One panel of what a product there reads: columns are sums, the last row is the bias.
template <class S>
void pack_ahead(const Link<S>& l, const S* weight, const S* bias, int64_t panel) {
  constexpr int W = kWidth<S>;
  int64_t K = l.source.size, start = panel * 2 * W, size = least(2 * W, l.rows() - start);
  for (int64_t j = 0; j < size; j += W) {
    Rows rows = rows_of(l, start + j);
    S* to = l.packed + start * l.columns() + j;
    for (int64_t k = 0; k < K; k += W) {
      Vector<S> part[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; i++)
        part[i] = i < rows.count ? load_some(weight + (rows.first + i) * K + k, K - k)
                                 : Vector<S>{};
      transpose<1, S>(part);
      for (int i = 0; i < W && k + i < K; i++) store(to + (k + i) * size, part[i]);
    }
    if (bias) store(to + K * size, load_some(bias + rows.first, rows.count));
  }
}

// One panel of what a product back reads: columns are what the matrix has read, rows its sums.
template <class S>
void pack_back(const Link<S>& l, const S* weight, int64_t panel) {
  constexpr int W = kWidth<S>;
  int64_t K = l.source.size, start = panel * 2 * W, size = least(2 * W, padded<S>(K) - start);
  S* to = l.packed + start * l.rows();
  for (int64_t n = 0; n < l.rows(); n += W) {
    Rows rows = rows_of(l, n);
    for (int i = 0; i < W; i++, to += size)
      for (int64_t j = 0; j < size; j += W)
        store(to + j, i < rows.count ? load_some(weight + (rows.first + i) * K + start + j,
                                                 K - start - j)
                                     : Vector<S>{});
  }
}

// The other way: rows first to last, with their padding, of a matrix's gradient.
template <class S>
void unpack_gradient(const Link<S>& l, int64_t first, int64_t last, S* weight, S* bias) {
  constexpr int W = kWidth<S>;
  int64_t N = padded<S>(l.columns()), K = l.source.size;
  for (int64_t n = first; n < last; n++) {
    Rows rows = rows_of(l, n / W * W);
    if (n % W >= rows.count) continue;
    int64_t row = rows.first + n % W;
    if (weight) memcpy(weight + row * K, l.gradient + n * N, K * sizeof(S));
    if (bias) bias[row] = l.gradient[n * N + K];
  }
}

}  // namespace attractor::ATTRACTOR_PATH
