// Rules that need nothing but a few numbers of each coordinate: one pass over memory for all
// tensors of a network, after one over the gradients that sees whether all are finite.
#pragma once

#include "../memory.hpp"
#include "../threads.hpp"
#include "functions.hpp"
#include "sweep.hpp"

namespace attractor::ATTRACTOR_PATH {

template <class S>
bool all_finite(const Sweep& sweep) {
  Vector<S> sum[4]{};  // of nothing but zeros and NaN, several under way at once
  constexpr int W = kWidth<S>;
  for (int64_t i = 0; i < sweep.count; i++) {
    const S* g = static_cast<const S*>(sweep.tensors[i].grad);
    int64_t n = sweep.tensors[i].size, j = 0;
    for (; j + 4 * W <= n; j += 4 * W)
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) sum[k] += load(g + j + k * W) * S(0);
    for (; j < n; j += W) sum[0] += load_some(g + j, n - j) * S(0);
  }
  Vector<S> found = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (int i = 0; i < W; i++)
    if (found[i] != 0) return false;
  return true;
}

// Vectors at the coordinates from j on: whole ones, or one that has only a few of them.
template <class S, bool Whole>
struct Lanes {
  int64_t j, count;
  Vector<S> operator()(const void* p) const {
    const S* at = static_cast<const S*>(p) + j;
    return Whole ? load(at) : load_some(at, count);
  }
  void put(void* p, Vector<S> v) const {
    S* at = static_cast<S*>(p) + j;
    if (Whole)
      store(at, v);
    else
      store_some(at, v, count);
  }
};

template <class S, class F>
[[gnu::always_inline]] inline void each_vector(int64_t from, int64_t to, F f) {
  for (; from + kWidth<S> <= to; from += kWidth<S>) f(Lanes<S, true>{from, kWidth<S>});
  if (from < to) f(Lanes<S, false>{from, to - from});
}

// theta -= rate beta (g + decay theta), beta one for all or one for each.
template <class S>
struct MetaSgd {
  static constexpr const char* name = "meta_sgd";
  using V = Vector<S>;
  const Swept& of;
  bool up;
  S rate, decay;

  MetaSgd(const Sweep&, const Swept& t)
      : of(t), up(t.sign < 0), rate(S(t.rate)), decay(S(t.decay)) {}

  void steps(int64_t from, int64_t to) const {
    each_vector<S>(from, to, [&](auto at) {
      V theta = at(of.param), g = at(of.grad);
      if (up) g = -g;
      at.put(of.param, theta - rate * (at(of.rates) * (g + decay * theta)));
    });
  }
  void finish() const {}
};

constexpr int64_t kStage = 256;  // coordinates that go through a stage at once

// As `Anytime` has it: averages m, n and v of gradients, and D.
template <class S>
struct AnytimeRule {
  static constexpr const char* name = "anytime";
  using V = Vector<S>;
  enum { kMu, kNu, kRho, kW0, kW1, kW2, kStrength, kAgreement, kGamma, kTau, kPower, kKappa, kBeta,
         kSize };
  const Swept of;  // a copy, which nothing that is written can change
  double t;
  S sign, forget[3], kept, w[3], n_whole, v_whole, strength, agreement, size, decay, q_moves, ahead_moves, keep;

  AnytimeRule(const Sweep& sweep, const Swept& tensor) : of(tensor) {
    const double* given = sweep.number;
    t = double(*static_cast<S*>(of.clock)) + 1;
    sign = S(of.sign);
    double whole[3];  // of Adam's corrections
    for (int i = 0; i < 3; i++) {
      forget[i] = S(1 - given[kMu + i]);
      whole[i] = 1 / (1 - __builtin_pow(given[kMu + i], t));
    }
    kept = S(given[kRho]);
    w[0] = S(given[kW0]), w[1] = S(given[kW1] * whole[0]), w[2] = S(given[kW2] * whole[1]);
    n_whole = S(whole[1]), v_whole = S(whole[2]);
    strength = S(given[kStrength] / 2), agreement = S(given[kAgreement] * 1.4426950408889634);
    double fading = __builtin_pow(1 + t / given[kTau], -given[kPower]);
    double gamma = of.rate * given[kGamma] * fading, c = given[kKappa] / (t - 1 + given[kKappa]);
    size = S(gamma * __builtin_pow(of.scale, given[kSize])), decay = S(gamma * of.decay);
    q_moves = S(given[kBeta] - 1), ahead_moves = S(-given[kBeta] * c), keep = S(1 - c);
  }

  // In stages of short chains, each of which a processor has many under way of.
  void steps(int64_t first, int64_t last) const {
    const AnytimeRule own = *this;
    S mixed[kStage], square[kStage], agree[kStage];
    for (int64_t from = first; from < last; from += kStage) {
      int64_t to = least(from + kStage, last), size = padded<S>(to - from);
      each_vector<S>(from, to, [&](auto at) {
        own.begin(at, mixed + at.j - from, square + at.j - from, agree + at.j - from);
      });
      for (int64_t j = 0; j < size; j += kWidth<S>)  // the exponent, to the base 2
        store(agree + j, own.strength * log_2(load(square + j)) +
                             own.agreement * quick_tanh(load(agree + j)));
      each_vector<S>(from, to, [&](auto at) {
        int64_t j = at.j - from;
        own.move(at, load(mixed + j) * power_2(load(agree + j)));
      });
    }
  }

  // The averages; what d is before it is scaled, and what it is scaled by.
  template <class Lanes>
  void begin(Lanes at, S* mixed, S* square, S* agree) const {
    V g = sign * at(of.grad), m = at(of.state[0]), n = at(of.state[1]), v = at(of.state[2]);
    m += forget[0] * (g - m), n += forget[1] * (g - n);
    v = kept * v + forget[2] * (g * g);  // stays infinite once it is, as Adam's
    V scale = inverse_root<S>(v * v_whole + S(1e-14));
    V s0 = g * scale, s2 = n * (scale * n_whole);
    at.put(of.state[0], m), at.put(of.state[1], n), at.put(of.state[2], v);
    store(mixed, (w[0] * g + w[1] * m + w[2] * n) * scale);
    store(square, s2 * s2 + S(1e-4)), store(agree, s0 * s2);
  }

  template <class Lanes>
  void move(Lanes at, V d) const {
    V theta = at(of.param), q = size * d + decay * theta, ahead = at(of.state[3]) + q;
    at.put(of.param, theta + (q_moves * q + ahead_moves * ahead));
    at.put(of.state[3], keep * ahead);
  }

  void finish() const { *static_cast<S*>(of.clock) = S(t); }
};

constexpr int64_t kSwept = 1 << 14;  // coordinates that one thread takes at a time

// Numbers of one coordinate depend on no other, so threads may share them in any way.
template <class S, template <class> class Rule>
int64_t sweep_with(const Sweep& sweep) {
  if (!all_finite<S>(sweep)) return 1;
  int64_t total = 0;
  for (int64_t i = 0; i < sweep.count; i++) total += ceil_div(sweep.tensors[i].size, kSwept);
  auto work = [](void* context, int index, int count, Meeting&) {
    const Sweep& all = *static_cast<const Sweep*>(context);
    for (int64_t i = 0, turn = 0; i < all.count; i++) {
      Rule<S> rule(all, all.tensors[i]);
      int64_t size = all.tensors[i].size;
      for (int64_t from = 0; from < size; from += kSwept, turn++) {
        if (turn % count != index) continue;
        rule.steps(from, least(from + kSwept, size));
      }
    }
  };
  together(int(least(sweep.threads, total / 4 + 1)), work, const_cast<Sweep*>(&sweep));
  for (int64_t i = 0; i < sweep.count; i++) Rule<S>(sweep, sweep.tensors[i]).finish();
  return 0;
}

template <template <class> class Rule>
constexpr Sweeper sweeper() {
  return {Rule<float>::name, [](const Sweep& sweep) {
            return sweep.bytes == 4 ? sweep_with<float, Rule>(sweep)
                                    : sweep_with<double, Rule>(sweep);
          }};
}

}  // namespace attractor::ATTRACTOR_PATH
