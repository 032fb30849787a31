// Rules that need nothing but a few numbers of each coordinate, and perhaps some means of its
// tensor: one pass over memory for all tensors of a network, after one over the gradients that sees
// whether all are finite.
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
  static constexpr bool kPaced = false;
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

constexpr int64_t kStage = 128;  // coordinates that go through a stage at once

// As `Anytime` has it: averages m, n and v of gradients, and D.
template <class S>
struct AnytimeRule {
  static constexpr const char* name = "anytime";
  using V = Vector<S>;
  static constexpr bool kPaced = false;
  enum { kMu, kNu, kRho, kW0, kW1, kW2, kStrength, kAgreement, kGamma, kTau, kFading, kKappa, kBeta,
         kSize };
  const Swept of;  // a copy, which nothing that is written can change
  double t;
  bool up, far;
  S forget[3], kept, w[3], n_whole, v_whole, strength, agreement, decay, q_moves, ahead_moves, keep;

  AnytimeRule(const Sweep& sweep, const Swept& tensor) : of(tensor) {
    const double* given = sweep.number;
    t = double(*static_cast<S*>(of.shared[0])) + 1;
    up = of.sign < 0;
    double whole[3];  // of Adam's corrections
    for (int i = 0; i < 3; i++) {
      forget[i] = S(1 - given[kMu + i]);
      whole[i] = 1 / (1 - __builtin_pow(given[kMu + i], t));
    }
    kept = S(given[kRho]);
    n_whole = S(whole[1] / 2), v_whole = S(whole[2]);  // half of it, for `scale` is twice what it is
    double half = given[kStrength] / 2, sure = given[kAgreement] * 1.4426950408889634;
    strength = S(half), agreement = S(sure);
    // by what a logarithm to the base 2 and a tanh can be at most
    far = sizeof(S) == 4 && __builtin_fabs(half) * 128 + __builtin_fabs(sure) > kFar;
    double fading = __builtin_pow(1 + t / given[kTau], -given[kFading]);
    double gamma = of.rate * given[kGamma] * fading, c = given[kKappa] / (t - 1 + given[kKappa]);
    double size = gamma * __builtin_pow(of.scale, given[kSize]);
    w[0] = S(size * given[kW0] / 2), w[1] = S(size * given[kW1] * whole[0] / 2);
    w[2] = S(size * given[kW2]);
    decay = S(gamma * of.decay);
    q_moves = S(given[kBeta] - 1), ahead_moves = S(-given[kBeta] * c), keep = S(1 - c);
  }

  void steps(int64_t first, int64_t last) const {
    up ? stages<true>(first, last) : stages<false>(first, last);
  }

  // In stages of short chains, each of which a processor has many under way of.
  template <bool Up>
  void stages(int64_t first, int64_t last) const {
    const AnytimeRule own = *this;
    alignas(64) S mixed[kStage], square[kStage], agree[kStage];
    for (int64_t from = first; from < last; from += kStage) {
      int64_t to = least(from + kStage, last), size = padded<S>(to - from);
      each_vector<S>(from, to, [&](auto at) {
        int64_t j = at.j - from;
        own.template begin<Up>(at, mixed + j, square + j, agree + j);
      });
#pragma GCC unroll 2
      for (int64_t j = 0; j < size; j += kWidth<S>)  // the exponent, to the base 2
        store(agree + j, own.strength * log_2(load(square + j)) +
                             own.agreement * tanh_of_half(load(agree + j)));
      for (int64_t j = 0; own.far && j < size; j += kWidth<S>)
        store(agree + j, not_far<S>(load(agree + j)));
      each_vector<S>(from, to, [&](auto at) {
        int64_t j = at.j - from;
        own.move(at, load(mixed + j), power_2(load(agree + j)));
      });
    }
  }

  // A gradient down, an average of squares that has seen it, and 2 / sqrt of it.
  template <bool Up, class Lanes>
  V down(Lanes at) const {
    return Up ? -at(of.grad) : at(of.grad);
  }
  V squares(V v, V g) const { return kept * v + forget[2] * (g * g); }  // stay infinite, as Adam's
  V scale(V v) const { return two_over_root<S>(v * v_whole + S(1e-14)); }

  // The averages; gamma d before it is scaled, and what it is scaled by.
  template <bool Up, class Lanes>
  void begin(Lanes at, S* mixed, S* square, S* agree) const {
    V g = down<Up>(at), m = at(of.state[0]), n = at(of.state[1]), v = at(of.state[2]);
    m += forget[0] * (g - m), n += forget[1] * (g - n), v = squares(v, g);
    V scale = this->scale(v), s0 = g * scale, s2 = n * (scale * n_whole);  // s0 is twice itself
    at.put(of.state[0], m), at.put(of.state[1], n), at.put(of.state[2], v);
    store(mixed, w[0] * s0 + (w[1] * m * scale + w[2] * s2));
    store(square, s2 * s2 + S(1e-4)), store(agree, s0 * s2);
  }

  template <class Lanes>
  void move(Lanes at, V mixed, V power) const {
    V theta = at(of.param), q = mixed * power + decay * theta, ahead = at(of.state[3]) + q;
    at.put(of.param, theta + q_moves * q + ahead_moves * ahead);
    at.put(of.state[3], keep * ahead);
  }

  void finish() const { *static_cast<S*>(of.shared[0]) = S(t); }
};

// The sums of s^2, s D and D^2, where s is a gradient over its root mean square.
struct Sums {
  double size, along, way;
};

// As `Pacer` without networks has it: Anytime, with a pace and a trend of each tensor.
template <class S>
struct PacerRule : AnytimeRule<S> {
  static constexpr const char* name = "pacer";
  using V = Vector<S>;
  using Base = AnytimeRule<S>;
  using Base::of;
  static constexpr bool kPaced = true;
  enum { kFaster = Base::kSize + 1, kSlower, kBack, kTrend, kLimit, kWane, kReturn };

  PacerRule(const Sweep& sweep, const Swept& tensor) : Base(sweep, tensor) {
    double home = sweep.number[kReturn], pace = *static_cast<S*>(of.shared[1]);
    S times = S(of.share * __builtin_exp(pace * home / (home + this->t)));
    for (S& one : this->w) one *= times;
  }

  Sums sums(int64_t first, int64_t last) const {
    return this->up ? sums_of<true>(first, last) : sums_of<false>(first, last);
  }

  template <bool Up>
  Sums sums_of(int64_t first, int64_t last) const {
    const PacerRule own = *this;
    Sums all{};
    for (int64_t from = first; from < last; from += kStage) {  // few enough to be exact together
      V size{}, along{}, way{};
      each_vector<S>(from, least(from + kStage, last), [&](auto at) {
        V g = own.template down<Up>(at), D = at(own.of.state[3]);
        V s = S(0.5) * g * own.scale(own.squares(at(own.of.state[2]), g));
        size += s * s, along += s * D, way += D * D;
      });
      for (int i = 0; i < kWidth<S>; i++) all.size += size[i], all.along += along[i], all.way += way[i];
    }
    return all;
  }

  // The next pace, by the means of the tensor, and the share that is taken of its steps.
  double pace(const Sweep& sweep, Sums all) const {
    const double* given = sweep.number;
    S *pace = static_cast<S*>(of.shared[1]), *trend = static_cast<S*>(of.shared[2]);
    double size = all.size / of.size + 1e-4, way = all.way / of.size + 1e-24;
    double cosine = all.along / of.size / __builtin_sqrt(way) / __builtin_sqrt(size);
    double h = given[kTrend] * *trend + (1 - given[kTrend]) * cosine, old = *pace;
    double push = h > 0 ? given[kFaster] * h : given[kSlower] * h;
    push *= given[kWane] / (given[kWane] + this->t - 1);
    if (old < 0) push -= given[kBack] * old;
    double next = old + 0.2 * __builtin_tanh(push / 0.2);
    *trend = S(h), *pace = S(next < -4 ? -4 : next > 6 ? 6 : next);
    double share = given[kLimit] / __builtin_sqrt(size);
    return share < 1 ? share : 1;
  }
};

constexpr int64_t kSwept = 1 << 14;  // coordinates that one thread takes at a time

// Threads share the pieces of all tensors: f(rule, number of the piece, from, to).
template <class S, template <class> class Rule, class F>
void each_piece(const Sweep& sweep, int index, int count, F f) {
  for (int64_t i = 0, turn = 0; i < sweep.count; i++) {
    Rule<S> rule(sweep, sweep.tensors[i]);
    int64_t size = sweep.tensors[i].size;
    for (int64_t from = 0; from < size; from += kSwept, turn++)
      if (turn % count == index) f(rule, turn, from, least(from + kSwept, size));
  }
}

// The pace of every tensor, by sums of its pieces in their order, whoever made them.
template <class S, template <class> class Rule>
void pace_all(const Sweep& sweep, int threads, int64_t pieces) {
  Workspace workspace;
  struct Context {
    const Sweep& sweep;
    Sums* sums;
  } all{sweep, workspace.array<Sums>(pieces)};
  together(
      threads,
      [](void* context, int index, int count, Meeting&) {
        const Context& own = *static_cast<const Context*>(context);
        each_piece<S, Rule>(own.sweep, index, count,
                            [&](const Rule<S>& rule, int64_t piece, int64_t from, int64_t to) {
                              own.sums[piece] = rule.sums(from, to);
                            });
      },
      &all);
  for (int64_t i = 0, piece = 0; i < sweep.count; i++) {
    Sums sum{};
    for (int64_t end = piece + ceil_div(sweep.tensors[i].size, kSwept); piece < end; piece++) {
      const Sums& one = all.sums[piece];
      sum.size += one.size, sum.along += one.along, sum.way += one.way;
    }
    sweep.tensors[i].share = Rule<S>(sweep, sweep.tensors[i]).pace(sweep, sum);
  }
}

// Numbers of one coordinate depend on no other but by the pace, so threads may share them in any way.
template <class S, template <class> class Rule>
int64_t sweep_with(const Sweep& sweep) {
  if (!all_finite<S>(sweep)) return 1;
  int64_t pieces = 0;
  for (int64_t i = 0; i < sweep.count; i++) pieces += ceil_div(sweep.tensors[i].size, kSwept);
  int threads = int(least(sweep.threads, pieces / 4 + 1));
  if constexpr (Rule<S>::kPaced) pace_all<S, Rule>(sweep, threads, pieces);
  auto work = [](void* context, int index, int count, Meeting&) {
    each_piece<S, Rule>(*static_cast<const Sweep*>(context), index, count,
                        [](const Rule<S>& rule, int64_t, int64_t from, int64_t to) {
                          rule.steps(from, to);
                        });
  };
  together(threads, work, const_cast<Sweep*>(&sweep));
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
