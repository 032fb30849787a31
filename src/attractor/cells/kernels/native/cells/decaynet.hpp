#pragma once

#include "shown.hpp"

namespace attractor::ATTRACTOR_PATH {

// An angle within a right one.
template <class S>
Vector<S> acute(Vector<S> p) {
  constexpr S right = S(1.5707963267948966);
  p = p < 0 ? Vector<S>{} : p;
  return p > right ? all<S>(right) : p;
}

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
  Shown<S> shows;
  const S* rate;

  explicit DecayNet(const Call& c) : Cell<S>(c), rate(static_cast<const S*>(c.constants)) {
    noise = units;
    F = block(units), I = block(units), O = block(units), A = block(units);
    output = H = state(units), C = state(units), P = state(units);
    reads_input(F, I, O, A);
    U = link(2, From::was, H, F, I, O, A);
    shows.join(*this, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V i = sigmoid(at.now(I)), o = sigmoid(at.now(O)), a = tanh(at.now(A));
      V fall = at.was(P) + rate[at.sequence] * (at.now(F) + 3);
      V c = sin(acute<S>(right - fall)) * at.was(C) + i * s.masked(a, at, units);
      at.now.put(I, i), at.now.put(O, o), at.now.put(A, a);
      at.now.put(H, o * tanh(c)), at.now.put(C, c), at.now.put(P, fall);
    });
    shows.forward(s, C, O, H);
  }

  void backward(const Step<S>& s) const override {
    shows.backward(s, O, [&](const At<S>& at) { return at.carry(H); });
    s.each(units, [&](At<S> at) {
      V i = at.now(I), o = at.now(O), a = at.now(A), old = at.was(C), p = right - at.now(P);
      V seen = shows(at, at.now(C)), d_h = at.carry(H);
      V d_c = at.carry(C) + shows.back(at, d_h, o, seen);
      V slope = p < 0 ? V{} : sin(right - acute<S>(p));  // also zero above a right angle
      V d_fall = at.carry(P) - d_c * old * slope;
      at.grad.put(F, rate[at.sequence] * d_fall);
      at.grad.put(I, d_c * s.masked(a, at, units) * i * (1 - i));
      at.grad.put(O, d_h * seen * o * (1 - o));
      at.grad.put(A, s.masked(d_c, at, units) * i * (1 - a * a));
      at.carry.put(C, d_c * sin(acute<S>(p))), at.carry.put(P, d_fall);
    });
    s.set_back(U);
  }
};

// A GRU that keeps the old by the same gate
// a = tanh(W x + U (r h) + b);  h = f h + (1 - f) a
template <class S>
struct DecayNetGru : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "decaynet_gru";
  static constexpr S right = S(1.5707963267948966);
  Block F, R, A, Q, H, P;  // Q is r h, P the fall
  Link<S>*gates, *candidate;
  const S* rate;

  explicit DecayNetGru(const Call& c) : Cell<S>(c), rate(static_cast<const S*>(c.constants)) {
    noise = units;
    F = block(units), R = block(units), A = block(units), Q = block(units);
    output = H = state(units), P = state(units);
    reads_input(F, R, A);
    gates = link(2, From::was, H, F, R);
    candidate = link(3, From::now, Q, A);
  }

  void forward(const Step<S>& s) const override {
    s.add(gates);
    s.each(units, [&](At<S> at) {
      V r = sigmoid(at.now(R)), fall = at.was(P) + rate[at.sequence] * (at.now(F) + 3);
      at.now.put(R, r), at.now.put(Q, r * at.was(H)), at.now.put(P, fall);
    });
    s.add(candidate);
    s.each(units, [&](At<S> at) {
      V f = sin(acute<S>(right - at.now(P))), a = tanh(at.now(A));
      at.now.put(A, a);
      at.now.put(H, f * at.was(H) + (1 - f) * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V a = at.now(A), h = at.was(H), d = at.carry(H), p = right - at.now(P);
      V f = sin(acute<S>(p)), slope = p < 0 ? V{} : sin(right - acute<S>(p));
      V d_fall = at.carry(P) - d * (h - s.masked(a, at, units)) * slope;
      at.grad.put(F, rate[at.sequence] * d_fall);
      at.grad.put(A, s.masked(d, at, units) * (1 - f) * (1 - a * a));
      at.carry.put(H, d * f), at.carry.put(P, d_fall);
    });
    s.set_back(candidate);
    s.each(units, [&](At<S> at) {
      V r = at.now(R), d = at.grad(Q);
      at.grad.put(R, d * at.was(H) * r * (1 - r));
      at.carry.add(H, d * r);
    });
    s.add_back(gates);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
