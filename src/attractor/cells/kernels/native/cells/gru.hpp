#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// r, z = sigmoid of W x + U h + b
// a = tanh(W x + U (r h) + b)
// h = (1 - z) h + z a
template <class S>
struct Gru : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "gru";
  Block R, Z, A, Q, H;  // Q is r h
  Link<S>*gates, *candidate;

  explicit Gru(const Call& c) : Cell<S>(c) {
    noise = units;
    R = block(units), Z = block(units), A = block(units), Q = block(units);
    output = H = state(units);
    reads_input(R, Z, A);
    gates = link(2, From::was, H, R, Z);
    candidate = link(3, From::now, Q, A);
  }

  void forward(const Step<S>& s) const override {
    s.add(gates);
    s.each(units, [&](At<S> at) {
      V r = sigmoid(at.now(R));
      at.now.put(R, r), at.now.put(Z, sigmoid(at.now(Z)));
      at.now.put(Q, r * at.was(H));
    });
    s.add(candidate);
    s.each(units, [&](At<S> at) {
      V z = at.now(Z), h = at.was(H), a = tanh(at.now(A));
      at.now.put(A, a);
      at.now.put(H, (1 - z) * h + z * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V z = at.now(Z), a = at.now(A), h = at.was(H), d = at.carry(H);
      at.grad.put(Z, d * (s.masked(a, at, units) - h) * z * (1 - z));
      at.grad.put(A, s.masked(d, at, units) * z * (1 - a * a));
      at.carry.put(H, d * (1 - z));
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

// The same, but a = tanh(W x + b + r (U h + b'))
template <class S>
struct GruAfter : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "gru_after";
  Block R, Z, A, Q, H;  // Q is U h
  Link<S>*gates, *candidate;
  Weights<S> shift;

  explicit GruAfter(const Call& c) : Cell<S>(c) {
    noise = units;
    R = block(units), Z = block(units), A = block(units), Q = block(units);
    output = H = state(units);
    reads_input(R, Z, A);
    gates = link(2, From::was, H, R, Z);
    candidate = link(3, From::was, H, Q);
    vector(shift, 4, units);
  }

  void forward(const Step<S>& s) const override {
    bool shifts = active(shift);
    s.add(gates), s.set(candidate);
    s.each(units, [&](At<S> at) {
      V r = sigmoid(at.now(R)), z = sigmoid(at.now(Z)), h = at.was(H), q = at.now(Q);
      if (shifts) q += at(shift);
      V a = tanh(at.now(A) + r * q);
      at.now.put(R, r), at.now.put(Z, z), at.now.put(A, a), at.now.put(Q, q);
      at.now.put(H, (1 - z) * h + z * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    bool shifts = active(shift);
    s.each(units, [&](At<S> at) {
      V r = at.now(R), z = at.now(Z), a = at.now(A), h = at.was(H), d = at.carry(H);
      V d_a = s.masked(d, at, units) * z * (1 - a * a);
      at.grad.put(Z, d * (s.masked(a, at, units) - h) * z * (1 - z));
      at.grad.put(R, d_a * at.now(Q) * r * (1 - r));
      at.grad.put(A, d_a), at.grad.put(Q, d_a * r);
      if (shifts) at.grad.put(shift.gradient, d_a * r);
      at.carry.put(H, d * (1 - z));
    });
    s.add_back(gates), s.add_back(candidate);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
