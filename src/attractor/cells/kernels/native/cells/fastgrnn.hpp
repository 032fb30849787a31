#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// f = sigmoid and a = tanh of W x + U h + b, which may be the same sum but for the biases
// h = f h + (beta (1 - f) + kappa) a
template <class S>
struct FastGrnn : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "fastgrnn";
  Block F, A, H;
  Link<S>* U;
  Weights<S> beta, kappa, shift_f, shift_a;
  bool shared;

  explicit FastGrnn(const Call& c) : Cell<S>(c), shared(c.number[0] != 0) {
    noise = units;
    F = block(units), A = block(units);
    output = H = state(units);
    if (shared) {
      reads_input(A);
      U = link(2, From::was, H, A);
    } else {
      reads_input(F, A);
      U = link(2, From::was, H, F, A);
    }
    vector(beta, 3, units), vector(kappa, 4, units);
    vector(shift_f, 5, units), vector(shift_a, 6, units);
  }

  void forward(const Step<S>& s) const override {
    bool shifts = active(shift_f);
    s.add(U);
    s.each(units, [&](At<S> at) {
      V a = at.now(A), f = shared ? a : at.now(F);
      if (shifts) f += at(shift_f), a += at(shift_a);
      f = sigmoid(f), a = tanh(a);
      at.now.put(F, f), at.now.put(A, a);
      at.now.put(H, f * at.was(H) + (at(beta) * (1 - f) + at(kappa)) * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    bool shifts = active(shift_f);
    s.each(units, [&](At<S> at) {
      V f = at.now(F), a = at.now(A), h = at.was(H), d = at.carry(H);
      V written = s.masked(a, at, units);
      V d_f = d * (h - at(beta) * written) * f * (1 - f);
      V d_a = s.masked(d, at, units) * (at(beta) * (1 - f) + at(kappa)) * (1 - a * a);
      at.grad.put(F, d_f), at.grad.put(A, shared ? d_f + d_a : d_a);
      at.grad.put(beta.gradient, d * (1 - f) * written);
      at.grad.put(kappa.gradient, d * written);
      if (shifts) at.grad.put(shift_f.gradient, d_f), at.grad.put(shift_a.gradient, d_a);
      at.carry.put(H, d * f);
    });
    s.add_back(U);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
