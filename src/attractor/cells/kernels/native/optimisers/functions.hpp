// What rules apply to gradients beyond the functions of cells.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "../vector.hpp"

namespace attractor::ATTRACTOR_PATH {

// The smaller or larger of two, the second if one is a NaN: one instruction where there is one.
template <class V>
inline V below(V bound, V x) {
  return bound < x ? bound : x;
}
template <class V>
inline V above(V bound, V x) {
  return bound > x ? bound : x;
}
#ifdef __AVX2__
inline Vector<float> below(Vector<float> bound, Vector<float> x) {
#ifdef __AVX512F__
  return Vector<float>(_mm512_min_ps(__m512(bound), __m512(x)));
#else
  return Vector<float>(_mm256_min_ps(__m256(bound), __m256(x)));
#endif
}
inline Vector<float> above(Vector<float> bound, Vector<float> x) {
#ifdef __AVX512F__
  return Vector<float>(_mm512_max_ps(__m512(bound), __m512(x)));
#else
  return Vector<float>(_mm256_max_ps(__m256(bound), __m256(x)));
#endif
}
#endif

// tanh in half of the time of `tanh`: for float a ratio of polynomials, least squares fitted to be
// within 6e-7 everywhere; for double `tanh` itself.
inline Vector<double> quick_tanh(Vector<double> x) { return tanh(x); }
inline Vector<float> quick_tanh(Vector<float> x) {
  x = above(all<float>(-8), below(all<float>(8), x));
  Vector<float> y = x * x, over = all<float>(-6.07381852e-09f), under = all<float>(1.95940383e-04f);
  over = over * y + 7.11841665e-06f, under = under * y + 2.28209630e-02f;
  over = over * y + 2.68979179e-03f, under = under * y + 4.60384503e-01f;
  over = over * y + 1.27053737e-01f, under = under * y + 1.0f;
  over = over * y + 9.99999450e-01f;
  return x * over / under;
}

// 1 / sqrt x of a positive number, from a guess and Newton's steps; of infinity 0.
template <class S, class V = Vector<S>>
inline V inverse_root(V x) {
  typedef typename VectorOf<typename Exponential<S>::Bits>::type Whole;
  constexpr bool single = sizeof(S) == 4;
  V y, half = S(0.5) * x;
  int steps = single ? 3 : 5;
#ifdef __AVX2__
  if constexpr (single) {  // twelve bits of it are one instruction
#ifdef __AVX512F__
    y = V(_mm512_rsqrt14_ps(__m512(x)));
#else
    y = V(_mm256_rsqrt_ps(__m256(x)));
#endif
    y = y * (S(1.5) - half * y * y);
    return x < S(__builtin_inf()) ? y : V{};
  }
#endif
  Whole bits;
  memcpy(&bits, &x, kBytes);
  bits = (single ? 0x5f3759df : 0x5fe6eb50c7b537a9LL) - (bits >> 1);  // half of its exponent
  memcpy(&y, &bits, kBytes);
#pragma GCC unroll 5
  for (int i = 0; i < steps; i++) y = y * (S(1.5) - half * y * y);
  return x < S(__builtin_inf()) ? y : V{};
}

// Logarithm and power to the base 2, for x of normal size and for results of it: a float within
// 2e-7, in two thirds of the time of `log_of` and `exp_of`, by which doubles go.
inline Vector<double> log_2(Vector<double> x) { return log_of<double>(x) * 1.4426950408889634; }
inline Vector<double> power_2(Vector<double> x) { return exp_of<double>(x * 0.6931471805599453); }
inline Vector<float> log_2(Vector<float> x) {
  using E = Exponential<float>;
  typedef VectorOf<int32_t>::type Whole;
  Whole bits;
  memcpy(&bits, &x, kBytes);
  Whole n = (bits - E::half_root) >> E::mantissa;
  bits -= n << E::mantissa;
  Vector<float> m;
  memcpy(&m, &bits, kBytes);
  // 2 / log 2 times the series of s, of which the next term is below 4e-8
  Vector<float> s = (m - 1.0f) / (m + 1.0f), y = s * s, series = all<float>(0.412198577f);
  series = series * y + 0.577078016f, series = series * y + 0.961796694f;
  series = series * y + 2.885390082f;
  return __builtin_convertvector(n, Vector<float>) + s * series;
}
inline Vector<float> power_2(Vector<float> x) {
  using E = Exponential<float>;
  typedef VectorOf<int32_t>::type Whole;
  x = above(all<float>(-125), below(all<float>(127), x));
  Vector<float> shifted = x + E::magic, r = x - (shifted - E::magic);
  Vector<float> series = all<float>(1.54035304e-4f);  // log(2)^k / k!
  series = series * r + 1.33335581e-3f, series = series * r + 9.61812911e-3f;
  series = series * r + 5.55041087e-2f, series = series * r + 0.240226507f;
  series = series * r + 0.693147181f, series = series * r + 1.0f;
  Whole bits;
  memcpy(&bits, &shifted, kBytes);
  bits = (bits << E::mantissa) + (E::bias << E::mantissa);
  Vector<float> power;
  memcpy(&power, &bits, kBytes);
  return power * series;
}

template <class V>
inline V absolute(V x) {
  return x < 0 ? -x : x;
}

// The two numbers that recurrent rules read of a gradient: `preprocess` of the Python side.
template <class S>
struct Preprocess {
  S p, small, large;
  explicit Preprocess(double p_) : p(S(p_)), small(S(__builtin_exp(-p_))), large(S(__builtin_exp(p_))) {}

  Vector<S> size(Vector<S> g) const {
    Vector<S> a = absolute(g);
    Vector<S> size = log_of<S>(a < small ? all<S>(small) : a) / p;
    return a - a == 0 ? size : a;  // infinity is as large as it is
  }

  Vector<S> direction(Vector<S> g) const {
    Vector<S> d = g * large;
    d = d > 1 ? all<S>(1) : d;
    return d < -1 ? all<S>(-1) : d;
  }
};

}  // namespace attractor::ATTRACTOR_PATH
