// The matrix of a product of plane rotations, from its angles, and from its gradient to theirs.
#pragma once

#include <cmath>

#include "call.hpp"
#include "memory.hpp"
#include "vector.hpp"

namespace attractor::ATTRACTOR_PATH {

// Rows of the matrix are turned in pairs by an angle each, from the unit matrix on. A complex
// matrix has its imaginary part below the real one, and then a phase turns a row with the row of
// its imaginary part. What an angle gets of the gradient is seen in the two rows that it made, and
// the rows before it are these, turned back: nothing is kept on the way.
//
// sizes: of nothing, units, layers of neighbours or 0 for FFT-style; weights: theta and, of complex
// numbers, phi and omega; last: the matrix, and of a complex one what reads the imaginary part.
template <class S>
class Rotation {
 public:
  explicit Rotation(const Call& call)
      : call_(call), n_(call.size[1]), capacity_(call.size[2]), complex_(call.weight[1]) {
    layers_ = capacity_;
    for (int64_t rest = n_; !capacity_ && rest > 1; rest /= 2) layers_++;
    width_ = padded<S>(n_), rows_ = complex_ ? 2 * n_ : n_;
  }

  void forward() {
    S* made = space_.zeros<S>(rows_ * width_);
    for (int64_t i = 0; i < n_; i++) made[i * width_ + i] = 1;
    prepare();
    for (int64_t i = layers_; i-- > 0;) {
      each_pair(i, [&](int64_t p, int64_t q, int64_t angle) {
        turn(made, p, q, theta_[angle]);
        if (!complex_) return;
        turn(made, n_ + p, n_ + q, theta_[angle]);
        turn(made, p, n_ + p, phi_[angle]);
      });
    }
    for (int64_t i = 0; complex_ && i < n_; i++) turn(made, i, n_ + i, omega_[i]);
    S* to = static_cast<S*>(call_.last[0]);
    for (int64_t i = 0; i < rows_; i++) memcpy(to + i * n_, made + i * width_, n_ * sizeof(S));
    if (!complex_) return;
    S* other = static_cast<S*>(call_.last[1]);
    for (int64_t i = 0; i < n_ * n_; i++) other[i] = -to[n_ * n_ + i], other[n_ * n_ + i] = to[i];
  }

  // Where `state` is the matrix that was made.
  void backward() {
    S *made = space_.zeros<S>(rows_ * width_), *grad = space_.zeros<S>(rows_ * width_);
    spread(call_.state[0], made), spread(call_.d_last[0], grad);
    if (complex_) add_other(static_cast<const S*>(call_.d_last[1]), grad);
    prepare();
    S *d_theta = static_cast<S*>(call_.d_weight[0]), *d_phi = static_cast<S*>(call_.d_weight[1]),
      *d_omega = static_cast<S*>(call_.d_weight[2]);
    auto undo = [&](int64_t p, int64_t q, Turn by) {
      S found = slope(made, grad, p, q);
      by.sin = -by.sin;
      turn(made, p, q, by), turn(grad, p, q, by);
      return found;
    };
    for (int64_t i = 0; complex_ && i < n_; i++) d_omega[i] = undo(i, n_ + i, omega_[i]);
    for (int64_t i = 0; i < layers_; i++) {
      each_pair(i, [&](int64_t p, int64_t q, int64_t angle) {
        if (complex_) d_phi[angle] = undo(p, n_ + p, phi_[angle]);
        d_theta[angle] = undo(p, q, theta_[angle]);
        if (complex_) d_theta[angle] += undo(n_ + p, n_ + q, theta_[angle]);
      });
    }
  }

 private:
  struct Turn {
    S cos, sin;
  };

  // As `rotations.layout` has it; all layers have so many angles before layer i.
  template <class F>
  void each_pair(int64_t i, F f) const {
    int64_t first = 0, distance = n_ >> (i + 1), angle = i * (n_ / 2);
    if (capacity_) {
      first = i % 2, distance = 1;
      angle = (i + 1) / 2 * (n_ / 2) + i / 2 * ((n_ - 1) / 2);
    }
    for (int64_t start = first; start + 2 * distance <= n_; start += 2 * distance)
      for (int64_t p = start; p < start + distance; p++) f(p, p + distance, angle++);
  }

  void prepare() {
    int64_t pairs = capacity_ ? (layers_ + 1) / 2 * (n_ / 2) + layers_ / 2 * ((n_ - 1) / 2)
                              : layers_ * (n_ / 2);
    theta_ = turns(0, pairs);
    if (complex_) phi_ = turns(1, pairs), omega_ = turns(2, n_);
  }

  const Turn* turns(int weight, int64_t count) {
    const S* angles = static_cast<const S*>(call_.weight[weight]);
    Turn* made = space_.array<Turn>(count);
    for (int64_t i = 0; i < count; i++) made[i] = {std::cos(angles[i]), std::sin(angles[i])};
    return made;
  }

  void turn(S* matrix, int64_t p, int64_t q, Turn by) const {
    S *above = matrix + p * width_, *below = matrix + q * width_;
    for (int64_t j = 0; j < width_; j += kWidth<S>) {
      Vector<S> a = load(above + j), b = load(below + j);
      store(above + j, by.cos * a - by.sin * b), store(below + j, by.sin * a + by.cos * b);
    }
  }

  // What the angle that made rows p and q gets.
  S slope(const S* made, const S* grad, int64_t p, int64_t q) const {
    Vector<S> sum{};
    for (int64_t j = 0; j < width_; j += kWidth<S>)
      sum += load(grad + q * width_ + j) * load(made + p * width_ + j) -
             load(grad + p * width_ + j) * load(made + q * width_ + j);
    return total<S>(sum);
  }

  void spread(const void* from, S* to) const {
    for (int64_t i = 0; from && i < rows_; i++)
      memcpy(to + i * width_, static_cast<const S*>(from) + i * n_, n_ * sizeof(S));
  }

  // The gradient of what reads the imaginary part, minus the imaginary rows above the real ones.
  void add_other(const S* other, S* grad) const {
    for (int64_t i = 0; other && i < n_; i++)
      for (int64_t j = 0; j < n_; j++) {
        grad[(n_ + i) * width_ + j] -= other[i * n_ + j];
        grad[i * width_ + j] += other[(n_ + i) * n_ + j];
      }
  }

  const Call& call_;
  Workspace space_;
  const int64_t n_, capacity_;
  const bool complex_;
  int64_t layers_ = 0, width_ = 0, rows_ = 0;
  const Turn *theta_ = nullptr, *phi_ = nullptr, *omega_ = nullptr;
};

}  // namespace attractor::ATTRACTOR_PATH
