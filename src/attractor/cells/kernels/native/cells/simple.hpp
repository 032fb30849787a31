#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// h = f(W x + U h + b), where f is tanh or ReLU
template <class S>
struct Rnn : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "rnn";
  Block A, H;
  Link<S>* U;
  bool relu;

  explicit Rnn(const Call& c) : Cell<S>(c), relu(c.number[0] != 0) {
    A = block(units);
    output = H = state(units);
    reads_input(A);
    U = link(2, From::was, H, A);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V a = at.now(A);
      at.now.put(H, relu ? positive(a) : tanh(a));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V h = at.now(H), d = at.carry(H);
      at.grad.put(A, relu ? where_positive(h, d) : d * (1 - h * h));
    });
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
      at.now.put(H, wait < S(0.5) ? a : at.was(H));
      at.now.put(W, (wait < S(0.5) ? at(period) : wait) - 1);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V wait = at.was(W), a = at.now(A), d = at.carry(H), d_wait = at.carry(W);
      at.grad.put(A, wait < S(0.5) ? d * (1 - a * a) : V{});
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
      at.now.put(H, f * at.was(H) + i * a);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V sum = at.now(F), f = sigmoid(sum), i = sigmoid(at(beta) - sum);
      V a = at.now(A), d = at.carry(H);
      at.grad.put(F, d * (at.was(H) * f * (1 - f) - a * i * (1 - i)));
      at.grad.put(A, d * i * (1 - a * a));
      at.carry.put(H, d * f);
    });
    s.add_back(U);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
