// Finding a place in a memory, reading and writing it, for one sequence at one step.
//
// A memory has one row per feature, which holds that feature of all places: what is done to every
// place is then done to whole vectors. A row has `n` places in `size` numbers; those behind the
// places are zero, and all functions keep them so.
#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// ---- numbers ----

template <class S>
inline S sigmoid_of_one(S x) {
  return S(1) / (S(1) + S(__builtin_exp(-double(x))));
}

// log(1 + e^x), and from its value its slope.
template <class S>
inline S softplus(S x) {
  return x > 20 ? x : S(__builtin_log1p(__builtin_exp(double(x))));
}
template <class S>
inline S softplus_slope(S y) {
  return y > 20 ? S(1) : S(-__builtin_expm1(-double(y)));
}

template <class S>
inline S root_of_one(S x) {
  return S(__builtin_sqrt(x));
}

// ---- vectors ----

template <class S>
inline void clear(S* to, int64_t n) {
  memset(to, 0, n * sizeof(S));
}

template <class S>
inline void add_scaled(S* to, const S* from, S scale, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth<S> <= n; i += kWidth<S>) store(to + i, load(to + i) + scale * load(from + i));
  for (; i < n; i++) to[i] += scale * from[i];
}

template <class S>
inline S dot(const S* a, const S* b, int64_t n) {
  constexpr int W = kWidth<S>;
  Vector<S> sum{}, other{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W)
    sum += load(a + i) * load(b + i), other += load(a + i + W) * load(b + i + W);
  for (; i + W <= n; i += W) sum += load(a + i) * load(b + i);
  S made = total<S>(sum + other);
  for (; i < n; i++) made += a[i] * b[i];
  return made;
}

// from, moved round by some places: to[i] += scale from[i - by], and the products of d with that.
template <class S>
inline void add_moved(S* to, const S* from, S scale, int64_t by, int64_t n) {
  by = (by % n + n) % n;
  add_scaled(to + by, from, scale, n - by);
  add_scaled(to, from + n - by, scale, by);
}
template <class S>
inline S dot_moved(const S* d, const S* from, int64_t by, int64_t n) {
  by = (by % n + n) % n;
  return dot(d + by, from, n - by) + dot(d, from + n - by, by);
}

template <class S>
inline S largest(const S* v, int64_t n) {
  constexpr int W = kWidth<S>;
  Vector<S> most = all<S>(v[0]);
  int64_t i = 0;
  for (; i + W <= n; i += W) most = load(v + i) > most ? load(v + i) : most;
  S made = largest_of<S>(most);
  for (; i < n; i++) made = v[i] > made ? v[i] : made;
  return made;
}

// Where v is largest, or v plus noise; the first place of several. A NaN is the largest.
template <class S>
inline int64_t largest_at(const S* v, const S* noise, int64_t n) {
  int64_t at = 0;
  S most = v[0] + (noise ? noise[0] : 0);
  for (int64_t i = 1; i < n && most == most; i++) {
    S here = v[i] + (noise ? noise[i] : 0);
    if (!(here <= most)) at = i, most = here;
  }
  return at;
}

// w = softmax of the first n of v; returns the logarithm of the sum that it divides by.
template <class S>
inline S softmax(const S* v, int64_t n, int64_t size, S* w) {
  constexpr int W = kWidth<S>;
  S most = largest(v, n);
  Vector<S> sum{};
  for (int64_t i = 0; i < size; i += W) {
    Vector<S> e = exp_of<S>(load(v + i) - most);
    for (int64_t lane = n - i; lane < W; lane++) e[lane] = 0;
    sum += e;
    store(w + i, e);
  }
  S whole = total<S>(sum), share = S(1) / whole;
  for (int64_t i = 0; i < size; i += W) store(w + i, load(w + i) * share);
  return most + S(__builtin_log(double(whole)));
}

// From the gradient of a softmax to that of what it was taken of.
template <class S>
inline void softmax_back(const S* w, const S* d, int64_t size, S* to) {
  S common = dot(w, d, size);
  for (int64_t i = 0; i < size; i += kWidth<S>)
    store(to + i, load(w + i) * (load(d + i) - common));
}

// The same for a few numbers among others.
template <class S>
inline void softmax_few(S* v, int64_t n) {
  S most = v[0], sum = 0;
  for (int64_t i = 1; i < n; i++) most = v[i] > most ? v[i] : most;
  for (int64_t i = 0; i < n; i++) sum += v[i] = S(__builtin_exp(double(v[i] - most)));
  for (int64_t i = 0; i < n; i++) v[i] /= sum;
}
template <class S>
inline void softmax_few_back(const S* w, S* d, int64_t n) {
  S common = 0;
  for (int64_t i = 0; i < n; i++) common += w[i] * d[i];
  for (int64_t i = 0; i < n; i++) d[i] = w[i] * (d[i] - common);
}

// ---- memory ----

// Rows of features; the first of them may stand elsewhere, as addresses that no step changes.
template <class T>
struct Memory {
  T* content;
  int64_t features, n, size;
  T* addresses = nullptr;
  int64_t fixed = 0;
  T* operator[](int64_t j) const {
    return j < fixed ? addresses + j * size : content + (j - fixed) * size;
  }
};

// One over the length of each place, or over the least length that counts.
template <class S>
inline void inverse_lengths(const Memory<const S>& m, S floor, S* made) {
  clear(made, m.size);
  for (int64_t j = 0; j < m.features; j++)
    for (int64_t i = 0; i < m.size; i += kWidth<S>)
      store(made + i, load(made + i) + load(m[j] + i) * load(m[j] + i));
  for (int64_t i = 0; i < m.size; i += kWidth<S>) {
    Vector<S> square = load(made + i);
    store(made + i, S(1) / root<S>(square < floor * floor ? all<S>(floor * floor) : square));
  }
}

template <class S>
inline S inverse_length(const S* key, int64_t features, S floor) {
  S square = 0;
  for (int64_t j = 0; j < features; j++) square += key[j] * key[j];
  return S(1) / root_of_one(square < floor * floor ? floor * floor : square);
}

// The cosine of the angle between a key and each place.
template <class S>
inline void cosine(const S* key, const Memory<const S>& m, const S* inverse, S floor, S* made) {
  S scale = inverse_length(key, m.features, floor);
  clear(made, m.size);
  for (int64_t j = 0; j < m.features; j++) add_scaled(made, m[j], key[j] * scale, m.size);
  for (int64_t i = 0; i < m.size; i += kWidth<S>)
    store(made + i, load(made + i) * load(inverse + i));
}

// From the gradient d of a cosine to those of the key and, added, of the memory. d is used up.
template <class S>
inline void cosine_back(const S* key, const Memory<const S>& m, const S* inverse, S floor,
                        const S* made, S* d, S* d_key, const Memory<S>& d_m, S* along) {
  constexpr int W = kWidth<S>;
  S scale = inverse_length(key, m.features, floor), most = S(1) / root_of_one(floor * floor);
  S along_key = scale < most ? dot(d, made, m.size) * scale * scale : S(0);
  for (int64_t i = 0; i < m.size; i += W) {  // a length that is below the floor does not count
    Vector<S> c = load(inverse + i), of = load(d + i);
    store(along + i, c < most ? of * load(made + i) * c * c : Vector<S>{});
    store(d + i, of * c * scale);
  }
  for (int64_t j = 0; j < m.features; j++) {
    const S* row = m[j];
    S* to = d_m[j];
    Vector<S> sum{};
    for (int64_t i = 0; i < m.size; i += W) {
      Vector<S> v = load(row + i), of = load(d + i);
      sum += of * v;
      store(to + i, load(to + i) + (key[j] * of - load(along + i) * v));
    }
    d_key[j] = total<S>(sum) - along_key * key[j];
  }
}

// What a head reads, r = M w, and back: the gradient of w is added to, and that of the memory.
template <class S>
inline void read(const Memory<const S>& m, const S* w, S* r) {
  for (int64_t j = 0; j < m.features; j++) r[j] = dot(w, m[j], m.size);
}
template <class S>
inline void read_back(const Memory<const S>& m, const S* w, const S* d_r, S* d_w,
                      const Memory<S>& d_m) {
  for (int64_t j = 0; j < m.features; j++)
    for (int64_t i = 0; i < m.size; i += kWidth<S>) {
      store(d_w + i, load(d_w + i) + d_r[j] * load(m[j] + i));
      store(d_m[j] + i, load(d_m[j] + i) + d_r[j] * load(w + i));
    }
}

// Heads that write: `count` rows of weights, and for each what it erases and adds, `apart` numbers
// from head to head.
template <class T>
struct Writers {
  int64_t count, apart;
  T *w, *e, *a;
};

// M' = M times the product of 1 - w e over the heads, plus the sum of w a.
template <class S>
inline void erase_and_add(const Memory<const S>& m, const Writers<const S>& by, S* made) {
  for (int64_t j = 0; j < m.features; j++)
    for (int64_t i = 0; i < m.size; i += kWidth<S>) {
      Vector<S> kept = load(m[j] + i), added{};
      for (int64_t h = 0; h < by.count; h++) {
        Vector<S> w = load(by.w + h * m.size + i);
        kept *= 1 - w * by.e[h * by.apart + j], added += w * by.a[h * by.apart + j];
      }
      store(made + j * m.size + i, kept + added);
    }
}

// From the gradient of M', which becomes that of M, to those of e and a and, added, of w.
template <class S>
inline void erase_and_add_back(const Memory<const S>& m, const Writers<const S>& by, S* d_m,
                               const Writers<S>& to) {
  for (int64_t j = 0; j < m.features; j++)
    for (int64_t h = 0; h < by.count; h++) {
      S e = by.e[h * by.apart + j], a = by.a[h * by.apart + j];
      Vector<S> of_e{}, of_a{};
      for (int64_t i = 0; i < m.size; i += kWidth<S>) {
        Vector<S> d = load(d_m + j * m.size + i), w = load(by.w + h * m.size + i), others = d;
        for (int64_t o = 0; o < by.count; o++)
          if (o != h) others *= 1 - load(by.w + o * m.size + i) * by.e[o * by.apart + j];
        Vector<S> gone = others * load(m[j] + i);
        of_e -= gone * w, of_a += d * w;
        store(to.w + h * m.size + i, load(to.w + h * m.size + i) + (d * a - gone * e));
        if (h == by.count - 1) store(d_m + j * m.size + i, others * (1 - w * e));
      }
      to.e[h * to.apart + j] = total<S>(of_e), to.a[h * to.apart + j] = total<S>(of_a);
    }
}

}  // namespace attractor::ATTRACTOR_PATH
