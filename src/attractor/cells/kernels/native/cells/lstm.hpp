#pragma once

#include "shown.hpp"

namespace attractor::ATTRACTOR_PATH {

// i, f, o = sigmoid and a = tanh of W x + U h + b, where i and f also see c, and o the new c
// c = f c + i a
// h = o tanh c, or P (o tanh c), where tanh c may be of the layer norm of c
template <class S>
struct Lstm : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "lstm";
  Block I, F, A, O, R, Y, H, C;
  Link<S>*U, *P = nullptr;
  Weights<S> see_i, see_f, see_o;
  Shown<S> shows;

  explicit Lstm(const Call& c) : Cell<S>(c) {
    noise = units;
    int64_t shown = c.weight[3] ? c.size[2] : units;  // units of h
    I = block(units), F = block(units), A = block(units), O = block(units);
    if (c.weight[3]) R = block(units), Y = block(shown);
    output = H = state(shown), C = state(units);
    reads_input(I, F, A, O);
    U = link(2, From::was, H, I, F, A, O);
    if (c.weight[3]) P = link(3, From::now, R, Y);
    vector(see_i, 4, units), vector(see_f, 5, units), vector(see_o, 6, units);
    shows.join(*this, units);
  }

  void forward(const Step<S>& s) const override {
    bool peeps = active(see_i);
    Block shown = P ? R : H;
    s.add(U);
    s.each(units, [&](At<S> at) {
      V old = at.was(C), i = at.now(I), f = at.now(F), o = at.now(O), a = tanh(at.now(A));
      if (peeps) i += at(see_i) * old, f += at(see_f) * old;
      i = sigmoid(i), f = sigmoid(f);
      V c = f * old + i * s.masked(a, at, units);
      if (peeps) o += at(see_o) * c;
      o = sigmoid(o);
      at.now.put(I, i), at.now.put(F, f), at.now.put(A, a), at.now.put(O, o), at.now.put(C, c);
      at.now.put(shown, o * tanh(c));
    });
    shows.forward(s, C, O, shown);
    if (!P) return;
    s.set(P);
    s.each(H.size, [&](At<S> at) { at.now.put(H, at.now(Y)); });
  }

  void backward(const Step<S>& s) const override {
    bool peeps = active(see_i);
    if (P) {
      s.each(H.size, [&](At<S> at) { at.grad.put(Y, at.carry(H)); });
      s.set_back(P);
    }
    auto given = [&](const At<S>& at) { return P ? at.grad(R) : at.carry(H); };
    shows.backward(s, O, given);
    s.each(units, [&](At<S> at) {
      V old = at.was(C), i = at.now(I), f = at.now(F), a = at.now(A), o = at.now(O), c = at.now(C);
      V d_h = given(at), seen = shows(at, c);
      V d_o = d_h * seen * o * (1 - o), d_c = at.carry(C) + shows.back(at, d_h, o, seen);
      if (peeps) d_c += d_o * at(see_o);
      V d_i = d_c * s.masked(a, at, units) * i * (1 - i), d_f = d_c * old * f * (1 - f);
      V d_a = s.masked(d_c, at, units) * i * (1 - a * a);
      at.grad.put(I, d_i), at.grad.put(F, d_f), at.grad.put(A, d_a), at.grad.put(O, d_o);
      V d_old = d_c * f;
      if (peeps) {
        d_old += d_i * at(see_i) + d_f * at(see_f);
        at.grad.put(see_i.gradient, d_i * old), at.grad.put(see_f.gradient, d_f * old);
        at.grad.put(see_o.gradient, d_o * c);
      }
      at.carry.put(C, d_old);
    });
    s.set_back(U);
  }
};

// The LSTM of 1997, without the forget gate: c = c + i a
template <class S>
struct Lstm1997 : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "lstm1997";
  Block I, A, O, H, C;
  Link<S>* U;
  Shown<S> shows;

  explicit Lstm1997(const Call& c) : Cell<S>(c) {
    noise = units;
    I = block(units), A = block(units), O = block(units);
    output = H = state(units), C = state(units);
    reads_input(I, A, O);
    U = link(2, From::was, H, I, A, O);
    shows.join(*this, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(U);
    s.each(units, [&](At<S> at) {
      V i = sigmoid(at.now(I)), a = tanh(at.now(A)), o = sigmoid(at.now(O));
      V c = at.was(C) + i * s.masked(a, at, units);
      at.now.put(I, i), at.now.put(A, a), at.now.put(O, o);
      at.now.put(H, o * tanh(c)), at.now.put(C, c);
    });
    shows.forward(s, C, O, H);
  }

  void backward(const Step<S>& s) const override {
    shows.backward(s, O, [&](const At<S>& at) { return at.carry(H); });
    s.each(units, [&](At<S> at) {
      V i = at.now(I), a = at.now(A), o = at.now(O), seen = shows(at, at.now(C));
      V d_h = at.carry(H), d_c = at.carry(C) + shows.back(at, d_h, o, seen);
      at.grad.put(I, d_c * s.masked(a, at, units) * i * (1 - i));
      at.grad.put(A, s.masked(d_c, at, units) * i * (1 - a * a));
      at.grad.put(O, d_h * seen * o * (1 - o));
      at.carry.put(C, d_c);
    });
    s.set_back(U);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
