#pragma once

#include "../normalise.hpp"

namespace attractor::ATTRACTOR_PATH {

// h = f(W x + U h + b), where f is tanh or ReLU, or f(alpha LN(W x + U h) + beta)
template <class S>
struct Rnn : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "rnn";
  Block A, T, E, H;  // T: LN of the sums, E: one over their deviation
  Link<S>* U;
  Weights<S> alpha, beta;
  bool relu, norm;

  explicit Rnn(const Call& c) : Cell<S>(c), relu(c.number[0] != 0), norm(c.weight[3]) {
    noise = units;
    A = block(units);
    if (norm) T = block(units), E = block(1);
    output = H = state(units);
    reads_input(A);
    U = link(2, From::was, H, A);
    vector(alpha, 3, units), vector(beta, 4, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    for (int64_t r = 0; norm && r < s.rows; r++) {
      S *sums = s.now + r * s.width + A.offset, *normal = s.now + r * s.width + T.offset;
      memcpy(normal, sums, padded<S>(units) * sizeof(S));
      s.now[r * s.width + E.offset] = normalise(normal, units);
    }
    s.each(units, [&](At<S> at) {
      V a = norm ? at(alpha) * at.now(T) : at.now(A);
      if (active(beta)) a += at(beta);
      a = relu ? positive(a) : tanh(a);
      at.now.put(A, a), at.now.put(H, s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V a = at.now(A), d = s.masked(at.carry(H), at, units);
      d = relu ? where_positive(a, d) : d * (1 - a * a);
      if (active(beta)) at.grad.put(beta.gradient, d);
      if (norm) at.grad.put(alpha.gradient, d * at.now(T)), d *= at(alpha);
      at.grad.put(A, d);
    });
    for (int64_t r = 0; norm && r < s.rows; r++) {
      const S* now = s.now + r * s.width;
      normalise_back(now + T.offset, now[E.offset], s.grad + r * s.grad_width + A.offset, units);
    }
    s.set_back(U);
  }
};

// The same with tanh, where a unit moves only if it has nothing to wait for
// wait = period - 1 for those that move, otherwise wait - 1
template <class S>
struct Clockwork : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "clockwork";
  Block A, H, W;  // W is the wait
  Link<S>* U;
  Weights<S> period;

  explicit Clockwork(const Call& c) : Cell<S>(c) {
    noise = units;
    A = block(units);
    output = H = state(units), W = state(units);
    reads_input(A);
    U = link(2, From::was, H, A);
    vector(period, 3, units, false);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V wait = at.was(W), a = tanh(at.now(A));
      at.now.put(A, a);
      at.now.put(H, wait < S(0.5) ? s.masked(a, at, units) : at.was(H));
      at.now.put(W, (wait < S(0.5) ? at(period) : wait) - 1);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V wait = at.was(W), a = at.now(A), d = at.carry(H), d_wait = at.carry(W);
      at.grad.put(A, wait < S(0.5) ? s.masked(d, at, units) * (1 - a * a) : V{});
      at.carry.put(H, wait < S(0.5) ? V{} : d);
      at.carry.put(W, wait < S(0.5) ? V{} : d_wait);
    });
    s.add_back(U);
  }
};

// s = W x + U h + b; a = tanh likewise
// h = sigmoid(s) h + (1 - sigmoid(s - beta)) a
template <class S>
struct Janet : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "janet";
  Block F, A, H;  // F is s
  Link<S>* U;
  Weights<S> beta;

  explicit Janet(const Call& c) : Cell<S>(c) {
    noise = units;
    F = block(units), A = block(units);
    output = H = state(units);
    reads_input(F, A);
    U = link(2, From::was, H, F, A);
    vector(beta, 3, units, false);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V sum = at.now(F), f = sigmoid(sum), i = sigmoid(at(beta) - sum), a = tanh(at.now(A));
      at.now.put(A, a);
      at.now.put(H, f * at.was(H) + i * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V sum = at.now(F), f = sigmoid(sum), i = sigmoid(at(beta) - sum);
      V a = at.now(A), d = at.carry(H);
      at.grad.put(F, d * (at.was(H) * f * (1 - f) - s.masked(a, at, units) * i * (1 - i)));
      at.grad.put(A, s.masked(d, at, units) * i * (1 - a * a));
      at.carry.put(H, d * f);
    });
    s.add_back(U);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
