// What rules apply to gradients beyond the functions of cells.
#pragma once

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

// x / y of a y of about one: for float from a guess of twelve bits and a step of Newton's.
template <class V>
inline V quotient(V x, V y) {
  return x / y;
}
#ifdef __AVX2__
inline Vector<float> quotient(Vector<float> x, Vector<float> y) {
#ifdef __AVX512F__
  Vector<float> guess = Vector<float>(_mm512_rcp14_ps(__m512(y)));
#else
  Vector<float> guess = Vector<float>(_mm256_rcp_ps(__m256(y)));
#endif
  x *= guess;
  return x + x * (1.0f - y * guess);
}
#endif

// tanh(x / 2), the same of fewer terms, within 1e-6.
inline Vector<double> tanh_of_half(Vector<double> x) { return tanh(0.5 * x); }
inline Vector<float> tanh_of_half(Vector<float> x) {
  x = above(all<float>(-14), below(all<float>(14), x));
  Vector<float> y = x * x;
  Vector<float> over = all<float>(3.92992342e-06f / 128), under = all<float>(1.42348814e-04f / 64);
  over = over * y + 2.27697031e-03f / 32, under = under * y + 2.10720934e-02f / 16;
  over = over * y + 1.23021625e-01f / 8, under = under * y + 4.56340104e-01f / 4;
  over = over * y + 9.99995709e-01f / 2, under = under * y + 1.0f;
  return quotient(x * over, under);
}

// 2 / sqrt x of a positive number, from a guess and Newton's steps, the last of which need not halve
// anything for it; of infinity 0.
template <class S, class V = Vector<S>>
inline V two_over_root(V x) {
  typedef typename VectorOf<typename Exponential<S>::Bits>::type Whole;
  constexpr bool single = sizeof(S) == 4;
  V y;
  int steps = single ? 3 : 5;
#ifdef __AVX2__
  if constexpr (single) {  // twelve bits of it are one instruction
#ifdef __AVX512F__
    y = V(_mm512_rsqrt14_ps(__m512(x)));
#else
    y = V(_mm256_rsqrt_ps(__m256(x)));
#endif
    return above(y * (S(3) - x * y * y), V{});  // 0 where it is a NaN
  }
#endif
  Whole bits;
  memcpy(&bits, &x, kBytes);
  bits = (single ? 0x5f3759df : 0x5fe6eb50c7b537a9LL) - (bits >> 1);  // half of its exponent
  memcpy(&y, &bits, kBytes);
#pragma GCC unroll 5
  for (int i = 1; i < steps; i++) y = y * (S(1.5) - S(0.5) * x * y * y);
  return x < S(__builtin_inf()) ? y * (S(3) - x * y * y) : V{};
}

// Logarithm and power to the base 2, for x of normal size and for results of it (`not_far` brings
// x there): a float within 2e-7 by polynomials of the least largest error, in half of the time
// of `log_of` and `exp_of`, by which doubles go.
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
  Vector<float> s = quotient(m - 1.0f, m + 1.0f), y = s * s, series = all<float>(0.598977745f);
  series = series * y + 0.961470723f, series = series * y + 2.88539124f;
  return __builtin_convertvector(n, Vector<float>) + s * series;
}
inline Vector<float> power_2(Vector<float> x) {
  using E = Exponential<float>;
  typedef VectorOf<int32_t>::type Whole;
  Vector<float> shifted = x + E::magic, r = x - (shifted - E::magic);
  Vector<float> series = all<float>(0.00132764725f);
  series = series * r + 0.00967554189f, series = series * r + 0.0555071309f;
  series = series * r + 0.240221202f, series = series * r + 0.693146944f;
  series = series * r + 1.00000012f;
  Whole bits, exponent;
  memcpy(&bits, &series, kBytes), memcpy(&exponent, &shifted, kBytes);
  bits += exponent << E::mantissa;
  memcpy(&series, &bits, kBytes);
  return series;
}
constexpr float kFar = 120;  // beyond which powers of floats may not be of normal size
template <class S, class V = Vector<S>>
inline V not_far(V x) {
  return above(all<S>(-kFar), below(all<S>(kFar), x));
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
