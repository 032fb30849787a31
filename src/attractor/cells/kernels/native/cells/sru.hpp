#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// f, p = sigmoid(W x + w c + b);  a = W x
// c = f c + (1 - f) a
// y = p c + (1 - p) scale x, where x may be seen through a matrix
template <class S>
struct Sru : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "sru";
  Block F, P, A, X, Y, C;
  Weights<S> see_f, see_p;
  S scale;
  bool direct;  // x as it is

  explicit Sru(const Call& c) : Cell<S>(c), scale(S(c.number[0])), direct(inputs == units) {
    noise = units;
    F = block(units), P = block(units), A = block(units);
    if (!direct) X = block(units);
    output = Y = block(units), C = state(units);
    direct ? reads_input(F, P, A) : reads_input(F, P, A, X);
    this->reads_x = direct;
    vector(see_f, 2, units), vector(see_p, 3, units);
  }

  V carried(const At<S>& at) const { return scale * (direct ? load(at.x.p) : at.now(X)); }

  void forward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V old = at.was(C), a = s.masked(at.now(A), at, units);
      V f = sigmoid(at.now(F) + at(see_f) * old), p = sigmoid(at.now(P) + at(see_p) * old);
      V c = f * old + (1 - f) * a;
      at.now.put(F, f), at.now.put(P, p), at.now.put(A, a), at.now.put(C, c);
      at.now.put(Y, p * c + (1 - p) * carried(at));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V f = at.now(F), p = at.now(P), a = at.now(A), old = at.was(C), c = at.now(C);
      V d = at.grad(Y), d_c = at.carry(C) + d * p, d_x = d * (1 - p) * scale;
      V d_f = d_c * (old - a) * f * (1 - f), d_p = d * (c - carried(at)) * p * (1 - p);
      at.grad.put(F, d_f), at.grad.put(P, d_p);
      at.grad.put(A, s.masked(d_c, at, units) * (1 - f));
      at.grad.put(see_f.gradient, d_f * old), at.grad.put(see_p.gradient, d_p * old);
      if (direct)
        store(at.d_x.p, d_x);
      else
        at.grad.put(X, d_x);
      at.carry.put(C, d_c * f + d_f * at(see_f) + d_p * at(see_p));
    });
  }
};

// f = sigmoid, o = sigmoid or tanh, a = itself, of W x + b + u;  u = U x, for the next step
// c = f c + (1 - f) a
// y = o c
template <class S>
struct TLstm : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "tlstm";
  Block sums[3], next[3], Y, C, last;
  bool squash;

  explicit TLstm(const Call& c) : Cell<S>(c), squash(c.number[0] != 0) {
    noise = units;
    for (Block& b : sums) b = block(units);
    for (Block& b : next) b = block(units);
    output = Y = block(units), C = state(units), last = state(3 * units);
    reads_input(sums[0], sums[1], sums[2], next[0], next[1], next[2]);
  }

  // The part of the last input's product that gate g reads.
  Block part(int g) const { return {last.offset + g * units, units}; }

  void forward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      int64_t n = units - at.unit;
      V f = sigmoid(at.now(sums[0]) + at.was.some(part(0), n));
      V o = at.now(sums[1]) + at.was.some(part(1), n);
      V a = s.masked(at.now(sums[2]) + at.was.some(part(2), n), at, units);
      o = squash ? tanh(o) : sigmoid(o);
      V c = f * at.was(C) + (1 - f) * a;
      at.now.put(sums[0], f), at.now.put(sums[1], o), at.now.put(sums[2], a);
      at.now.put(C, c), at.now.put(Y, o * c);
      for (int g = 0; g < 3; g++) at.now.put_some(part(g), at.now(next[g]), n);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      int64_t n = units - at.unit;
      V f = at.now(sums[0]), o = at.now(sums[1]), a = at.now(sums[2]), old = at.was(C);
      V d = at.grad(Y), d_c = at.carry(C) + d * o;
      V made[3] = {d_c * (old - a) * f * (1 - f),
                   d * at.now(C) * (squash ? 1 - o * o : o * (1 - o)),
                   s.masked(d_c, at, units) * (1 - f)};
      for (int g = 0; g < 3; g++) {
        at.grad.put(next[g], at.carry.some(part(g), n));
        at.grad.put(sums[g], made[g]);
        at.carry.put_some(part(g), made[g], n);
      }
      at.carry.put(C, d_c * f);
    });
  }
};

}  // namespace attractor::ATTRACTOR_PATH
