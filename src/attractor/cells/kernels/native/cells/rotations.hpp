#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// z = W h + U x, where W is a rotation
// h = sign(z) ReLU(|z| + b), where b has the epsilon in it; without b, z
template <class S>
struct Eurnn : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "eurnn_real";
  Block Z, H;
  Link<S>* W;
  Weights<S> b;

  explicit Eurnn(const Call& c) : Cell<S>(c) {
    Z = block(units), output = H = state(units);
    reads_input(Z);
    W = link(2, From::was, H, Z);
    vector(b, 3, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(W);
    s.each(units, [&](At<S> at) {
      at.now.put(H, active(b) ? mod_relu<S>(at.now(Z), at(b)) : at.now(Z));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V z = at.now(Z), d = at.carry(H);
      if (active(b)) {
        d = mod_relu_slope<S>(z, at(b), d);
        at.grad.put(b.gradient, z < 0 ? -d : d);
      }
      at.grad.put(Z, d);
    });
    s.set_back(W);
  }
};

// The same for complex numbers, h = z / |z| ReLU(|z| + b), where |z| has the epsilon in it
template <class S>
struct ComplexEurnn : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "eurnn";
  static constexpr S epsilon = S(0.01);
  Block X, Y, RE, IM;
  Link<S>*from_re, *from_im;
  Weights<S> b;

  explicit ComplexEurnn(const Call& c) : Cell<S>(c) {
    X = block(units), Y = block(units), output = RE = state(units), IM = state(units);
    reads_input(X, Y);
    from_re = link(2, From::was, RE, X, Y), from_im = link(3, From::was, IM, X, Y);
    vector(b, 4, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(from_re), s.add(from_im);
    s.each(units, [&](At<S> at) {
      V x = at.now(X), y = at.now(Y), size = root<S>(x * x + y * y + S(1e-24)) + epsilon;
      V keep = positive(size + at(b)) / size;
      at.now.put(RE, x * keep), at.now.put(IM, y * keep);
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V x = at.now(X), y = at.now(Y), plain = root<S>(x * x + y * y + S(1e-24));
      V size = plain + epsilon, keep = positive(size + at(b)) / size;
      V d_re = at.carry(RE), d_im = at.carry(IM);
      V d_b = where_positive(size + at(b), (d_re * x + d_im * y) / size);
      V d_size = -d_b * at(b) / (size * plain);  // over |z|, to be multiplied by x and y
      at.grad.put(X, d_re * keep + d_size * x), at.grad.put(Y, d_im * keep + d_size * y);
      at.grad.put(b.gradient, d_b);
    });
    s.set_back(from_re), s.set_back(from_im);
  }
};

// r, z = sigmoid of W x + U h + b
// a = modReLU(W x + r (Q h)), where Q is a rotation; without a b the modReLU does nothing
// h = z h + (1 - z) a
template <class S>
struct Goru : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "goru";
  Block R, Z, A, Q, H;  // A is the modReLU's argument, Q is Q h
  Link<S>*gates, *turns;
  Weights<S> b;

  explicit Goru(const Call& c) : Cell<S>(c) {
    noise = units;
    R = block(units), Z = block(units), A = block(units), Q = block(units);
    output = H = state(units);
    reads_input(R, Z, A);
    gates = link(2, From::was, H, R, Z), turns = link(3, From::was, H, Q);
    vector(b, 4, units);
  }

  void forward(const Step<S>& s) const override {
    s.add(gates), s.set(turns);
    s.each(units, [&](At<S> at) {
      V r = sigmoid(at.now(R)), z = sigmoid(at.now(Z)), sum = at.now(A) + r * at.now(Q);
      V a = active(b) ? mod_relu<S>(sum, at(b)) : sum;
      at.now.put(R, r), at.now.put(Z, z), at.now.put(A, sum);
      at.now.put(H, z * at.was(H) + (1 - z) * s.masked(a, at, units));
    });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V r = at.now(R), z = at.now(Z), sum = at.now(A), d = at.carry(H);
      V a = sum, d_a = s.masked(d, at, units) * (1 - z);
      if (active(b)) {
        a = mod_relu<S>(sum, at(b)), d_a = mod_relu_slope<S>(sum, at(b), d_a);
        at.grad.put(b.gradient, sum < 0 ? -d_a : d_a);
      }
      at.grad.put(Z, d * (at.was(H) - s.masked(a, at, units)) * z * (1 - z)), at.grad.put(A, d_a);
      at.grad.put(R, d_a * at.now(Q) * r * (1 - r)), at.grad.put(Q, d_a * r);
      at.carry.put(H, d * z);
    });
    s.add_back(gates), s.add_back(turns);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
