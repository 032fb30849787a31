// Vectors of numbers, as wide as the instruction set that this file is compiled for, and the
// functions that cells apply to them. S is float or double throughout.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>  // for what vectors of the compiler cannot say
#endif

// One namespace per instruction set: the same sources are compiled several times into one library.
namespace attractor::ATTRACTOR_PATH {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kRows = 10;  // rows of a product that are in registers at once
#elif defined(__AVX2__)
constexpr int kBytes = 32;
constexpr int kRows = 6;
#elif defined(__aarch64__)
constexpr int kBytes = 16;
constexpr int kRows = 8;
#else
constexpr int kBytes = 16;
constexpr int kRows = 4;
#endif

template <class S>
struct VectorOf {
  typedef S type __attribute__((vector_size(kBytes)));
};
template <class S>
using Vector = typename VectorOf<S>::type;

template <class S>
constexpr int kWidth = kBytes / int(sizeof(S));

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A size with the padding that makes it whole vectors.
template <class S>
inline int64_t padded(int64_t n) {
  return ceil_div(n, kWidth<S>) * kWidth<S>;
}

template <class S>
inline Vector<S> load(const S* p) {
  Vector<S> v;
  memcpy(&v, p, kBytes);
  return v;
}

template <class S>
inline void store(S* p, Vector<S> v) {
  memcpy(p, &v, kBytes);
}

// The first n numbers, fewer than a vector has; in one instruction, where there is one.
#if defined(__AVX512F__)
inline Vector<float> load_part(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p);
}
inline Vector<double> load_part(const double* p, int64_t n) {
  return _mm512_maskz_loadu_pd(__mmask8((1u << n) - 1), p);
}
inline void store_part(float* p, Vector<float> v, int64_t n) {
  _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), v);
}
inline void store_part(double* p, Vector<double> v, int64_t n) {
  _mm512_mask_storeu_pd(p, __mmask8((1u << n) - 1), v);
}
#elif defined(__AVX2__)
inline __m256i first_floats(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256i first_doubles(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline Vector<float> load_part(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_floats(n));
}
inline Vector<double> load_part(const double* p, int64_t n) {
  return _mm256_maskload_pd(p, first_doubles(n));
}
inline void store_part(float* p, Vector<float> v, int64_t n) {
  _mm256_maskstore_ps(p, first_floats(n), v);
}
inline void store_part(double* p, Vector<double> v, int64_t n) {
  _mm256_maskstore_pd(p, first_doubles(n), v);
}
#else
template <class S>
inline Vector<S> load_part(const S* p, int64_t n) {
  Vector<S> v{};
  memcpy(&v, p, n * sizeof(S));
  return v;
}
template <class S>
inline void store_part(S* p, Vector<S> v, int64_t n) {
  memcpy(p, &v, n * sizeof(S));
}
#endif

// The first n numbers, or all that there are; those that are not loaded are zero.
template <class S>
inline Vector<S> load_some(const S* p, int64_t n) {
  return n >= kWidth<S> ? load(p) : load_part(p, n);
}
template <class S>
inline void store_some(S* p, Vector<S> v, int64_t n) {
  n >= kWidth<S> ? store(p, v) : store_part(p, v, n);
}

template <class S>
inline Vector<S> all(S x) {
  return Vector<S>{} + x;
}

// Constants of the exponential: its range, the bits of its type, the terms of its series.
template <class S>
struct Exponential;
template <>
struct Exponential<float> {
  typedef int32_t Bits;
  static constexpr float low = -87.0f, high = 88.0f, magic = 12582912.0f;
  static constexpr float ln2_head = 0.693359375f, ln2_tail = -2.12194440e-4f;
  static constexpr int mantissa = 23, bias = 127, terms = 7, sine_terms = 7;
  static constexpr int log_terms = 5;
  static constexpr Bits half_root = 0x3f3504f3;  // the bits of sqrt(1/2)
};
template <>
struct Exponential<double> {
  typedef int64_t Bits;
  static constexpr double low = -708.0, high = 709.0, magic = 6755399441055744.0;
  static constexpr double ln2_head = 0.693145751953125, ln2_tail = 1.42860682030941723212e-6;
  static constexpr int mantissa = 52, bias = 1023, terms = 13, sine_terms = 11;
  static constexpr int log_terms = 11;
  static constexpr Bits half_root = 0x3fe6a09e667f3bcd;
};

constexpr double inverse_factorial(int n) { return n < 2 ? 1.0 : inverse_factorial(n - 1) / n; }

// e^x as 2^n (1 + rest), with rest = e^r - 1 by its series and |r| <= ln(2) / 2. Ends at the range
// of the type; a NaN stays one.
template <class S, class V = Vector<S>>
struct Power {
  V power, rest;
};
template <class S, class V = Vector<S>>
inline Power<S> power_of_e(V x) {
  using E = Exponential<S>;
  typedef typename VectorOf<typename E::Bits>::type Whole;
  x = x < E::low ? all<S>(E::low) : x;
  x = x > E::high ? all<S>(E::high) : x;
  V shifted = x * S(1.44269504088896340736) + E::magic;  // n in the last bits
  V n = shifted - E::magic;
  V r = (x - n * E::ln2_head) - n * E::ln2_tail;
  V series = all<S>(inverse_factorial(E::terms));
#pragma GCC unroll 16
  for (int k = E::terms - 1; k > 0; k--) series = series * r + S(inverse_factorial(k));
  Whole bits;
  memcpy(&bits, &shifted, kBytes);
  bits = (bits << E::mantissa) + (typename E::Bits(E::bias) << E::mantissa);
  V power;
  memcpy(&power, &bits, kBytes);
  return {power, series * r};
}

// e^x - 1, exact for small x, and e^x, exact for large negative x.
template <class S, class V = Vector<S>>
inline V expm1(V x) {
  Power<S> e = power_of_e<S>(x);
  return e.power * e.rest + (e.power - S(1));
}
template <class S, class V = Vector<S>>
inline V exp_of(V x) {
  Power<S> e = power_of_e<S>(x);
  return e.power * e.rest + e.power;
}

// log x of a positive number, as n log 2 + log m with m from sqrt(1/2) to sqrt(2) and the series
// of log m in (m - 1) / (m + 1); a NaN stays one.
template <class S, class V = Vector<S>>
inline V log_of(V x) {
  using E = Exponential<S>;
  typedef typename VectorOf<typename E::Bits>::type Whole;
  Whole bits;
  memcpy(&bits, &x, kBytes);
  Whole n = (bits - E::half_root) >> E::mantissa;
  bits -= n << E::mantissa;
  V m;
  memcpy(&m, &bits, kBytes);
  V s = (m - S(1)) / (m + S(1)), square = s * s, series = all<S>(S(1) / (2 * E::log_terms + 1));
#pragma GCC unroll 16
  for (int k = E::log_terms - 1; k >= 0; k--) series = series * square + S(1) / (2 * k + 1);
  V whole = __builtin_convertvector(n, V);
  V log = whole * E::ln2_head + (whole * E::ln2_tail + 2 * s * series);
  return x != x ? x : log;
}

// The sum and the largest of the numbers in a vector, half to half; a NaN is the largest.
template <class S, int bytes = kBytes, class V>
inline S total(V v) {
  if constexpr (bytes == sizeof(S)) {
    return v[0];
  } else {
    typedef S Half __attribute__((vector_size(bytes / 2)));
    Half low, high;
    memcpy(&low, &v, bytes / 2);
    memcpy(&high, reinterpret_cast<const char*>(&v) + bytes / 2, bytes / 2);
    return total<S, bytes / 2>(Half(low + high));
  }
}
template <class S, class V = Vector<S>>
inline S largest_of(V v) {
  S most = v[0];
  for (int i = 1; i < kWidth<S>; i++) most = v[i] > most || v[i] != v[i] ? v[i] : most;
  return most;
}

template <class S, class V = Vector<S>>
inline V sigmoid_of(V x) {
  V y = S(1) / (expm1<S>(-x) + S(2));
  return x < -Exponential<S>::high ? V{} : y;  // zero and not nearly so, for what it multiplies
}

template <class S, class V = Vector<S>>
inline V tanh_of(V x) {
  V e = expm1<S>(x + x);
  return e / (e + S(2));
}

// sin x for x from 0 to a right angle, by its series.
template <class S, class V = Vector<S>>
inline V sin_of(V x) {
  constexpr int last = Exponential<S>::sine_terms;
  V square = -x * x, series = all<S>(inverse_factorial(2 * last + 1));
#pragma GCC unroll 16
  for (int k = last - 1; k >= 0; k--) series = series * square + S(inverse_factorial(2 * k + 1));
  return x * series;
}

// ReLU, and d where v is positive; as torch does it with a NaN.
template <class V>
inline V positive(V v) {
  return v < 0 ? V{} : v;
}
template <class V>
inline V where_positive(V v, V d) {
  return v <= 0 ? V{} : d;
}

template <class S, class V = Vector<S>>
inline V root(V v) {
  for (int i = 0; i < kWidth<S>; i++) v[i] = S(__builtin_sqrt(v[i]));
  return v;
}

// sign(z) ReLU(|z| + b), and what a gradient d of it is to z; zero at zero, as torch has it.
template <class S, class V = Vector<S>>
inline V mod_relu(V z, V b) {
  V kept = positive((z < 0 ? -z : z) + b);
  return z == 0 ? V{} : (z < 0 ? -kept : kept);
}
template <class S, class V = Vector<S>>
inline V mod_relu_slope(V z, V b, V d) {
  V slope = where_positive((z < 0 ? -z : z) + b, d);
  return z == 0 ? V{} : slope;
}

// The names without the type, for cells.
inline Vector<float> sigmoid(Vector<float> x) { return sigmoid_of<float>(x); }
inline Vector<double> sigmoid(Vector<double> x) { return sigmoid_of<double>(x); }
inline Vector<float> tanh(Vector<float> x) { return tanh_of<float>(x); }
inline Vector<double> tanh(Vector<double> x) { return tanh_of<double>(x); }
inline Vector<float> sin(Vector<float> x) { return sin_of<float>(x); }
inline Vector<double> sin(Vector<double> x) { return sin_of<double>(x); }

}  // namespace attractor::ATTRACTOR_PATH
