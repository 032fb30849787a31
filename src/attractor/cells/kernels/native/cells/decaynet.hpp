#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// An LSTM whose forget gate is f = sin p, within its range, where
// p is a right angle less what it has fallen, fall = fall + rate (W x + U h + 3), and the rate is a
// constant of each sequence
template <class S>
struct DecayNet : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "decaynet";
  static constexpr S right = S(1.5707963267948966);
  Block F, I, O, A, H, C, P;  // P is the fall
  Link<S>* U;
  const S* rate;

  explicit DecayNet(const Call& c) : Cell<S>(c), rate(static_cast<const S*>(c.constants)) {
    F = block(units), I = block(units), O = block(units), A = block(units);
    output = H = state(units), C = state(units), P = state(units);
    reads_input(F, I, O, A);
    U = link(2, From::was, H, F, I, O, A);
  }

  static V within(V p) {
    p = p < 0 ? V{} : p;
    return p > right ? all<S>(right) : p;
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V i = sigmoid(at.now(I)), o = sigmoid(at.now(O)), a = tanh(at.now(A));
      V fall = at.was(P) + rate[at.sequence] * (at.now(F) + 3);
      V c = sin(within(right - fall)) * at.was(C) + i * a;
      at.now.put(I, i), at.now.put(O, o), at.now.put(A, a);
      at.now.put(H, o * tanh(c)), at.now.put(C, c), at.now.put(P, fall);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V i = at.now(I), o = at.now(O), a = at.now(A), old = at.was(C), p = right - at.now(P);
      V seen = tanh(at.now(C)), d_h = at.carry(H), d_c = at.carry(C) + d_h * o * (1 - seen * seen);
      V slope = p < 0 ? V{} : sin(right - within(p));  // also zero above a right angle
      V d_fall = at.carry(P) - d_c * old * slope;
      at.grad.put(F, rate[at.sequence] * d_fall), at.grad.put(I, d_c * a * i * (1 - i));
      at.grad.put(O, d_h * seen * o * (1 - o)), at.grad.put(A, d_c * i * (1 - a * a));
      at.carry.put(C, d_c * sin(within(p))), at.carry.put(P, d_fall);
    });
    s.set_back(U);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
