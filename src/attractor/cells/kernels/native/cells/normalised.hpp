#pragma once

#include "../normalise.hpp"

namespace attractor::ATTRACTOR_PATH {

// i, f, o = sigmoid and a = tanh of W x + b + alpha LN(U h), where W x is normalised already
// c = f c + i a
// h = o tanh(gamma LN(c) + beta)
template <class S>
struct NormalLstm : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "lstm_norm";
  Block I, F, A, O, U[4], T, E, H, C;  // U: LN(U h); T: LN(c); E: one over each deviation
  Link<S>* sums;
  Weights<S> alpha, gamma, beta;

  explicit NormalLstm(const Call& c) : Cell<S>(c) {
    noise = units;
    I = block(units), F = block(units), A = block(units), O = block(units);
    for (Block& u : U) u = block(units);
    T = block(units), E = block(2);
    output = H = state(units), C = state(units);
    reads_input(I, F, A, O);
    sums = link(2, From::was, H, U[0], U[1], U[2], U[3]);
    vector(alpha, 3, units, true, 4), vector(gamma, 4, units), vector(beta, 5, units);
  }

  V scale(const At<S>& at, int k) const {
    return load(alpha.value + k * padded<S>(units) + at.unit);
  }

  void forward(const Step<S>& s) const override {
    s.set(sums);
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      now[E.offset] = normalise(now + U[0].offset, units, 4);
    }
    s.each(units, [&](At<S> at) {
      V i = sigmoid(at.now(I) + scale(at, 0) * at.now(U[0]));
      V f = sigmoid(at.now(F) + scale(at, 1) * at.now(U[1]));
      V a = tanh(at.now(A) + scale(at, 2) * at.now(U[2]));
      V o = sigmoid(at.now(O) + scale(at, 3) * at.now(U[3]));
      V c = f * at.was(C) + i * s.masked(a, at, units);
      at.now.put(I, i), at.now.put(F, f), at.now.put(A, a), at.now.put(O, o);
      at.now.put(C, c), at.now.put(T, c);
    });
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      now[E.offset + 1] = normalise(now + T.offset, units);
    }
    s.each(units, [&](At<S> at) {
      at.now.put(H, at.now(O) * tanh(at(gamma) * at.now(T) + at(beta)));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V o = at.now(O), shown = tanh(at(gamma) * at.now(T) + at(beta)), d = at.carry(H);
      V d_t = d * o * (1 - shown * shown);
      at.grad.put(O, d * shown * o * (1 - o));
      at.grad.put(gamma.gradient, d_t * at.now(T)), at.grad.put(beta.gradient, d_t);
      at.grad.put(T, d_t * at(gamma));
    });
    for (int64_t r = 0; r < s.rows; r++) {
      const S* now = s.now + r * s.width;
      normalise_back(now + T.offset, now[E.offset + 1], s.grad + r * s.grad_width + T.offset,
                     units);
    }
    s.each(units, [&](At<S> at) {
      V i = at.now(I), f = at.now(F), a = at.now(A), d_c = at.carry(C) + at.grad(T);
      at.grad.put(I, d_c * s.masked(a, at, units) * i * (1 - i));
      at.grad.put(F, d_c * at.was(C) * f * (1 - f));
      at.grad.put(A, s.masked(d_c, at, units) * i * (1 - a * a));
      at.carry.put(C, d_c * f);
      Block gates[] = {I, F, A, O};
      for (int k = 0; k < 4; k++) {
        V d = at.grad(gates[k]);
        Block own{alpha.gradient.offset + k * padded<S>(units), units};
        at.grad.put(own, d * at.now(U[k])), at.grad.put(U[k], d * scale(at, k));
      }
    });
    for (int64_t r = 0; r < s.rows; r++) {
      const S* now = s.now + r * s.width;
      normalise_back(now + U[0].offset, now[E.offset], s.grad + r * s.grad_width + U[0].offset,
                     units, 4);
    }
    s.set_back(sums);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
