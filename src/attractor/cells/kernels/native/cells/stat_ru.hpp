#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// r = ReLU(R m + b);  e = ReLU(W x + M r + b)
// m = alpha m + (1 - alpha) e, for each alpha
// y = ReLU(Y m + b)
template <class S>
struct StatRu : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "stat_ru";
  Block R, E, Y, M, K;  // K is what Y gives to m
  Link<S>*reads, *mixes, *shows;
  Weights<S> shift_r, shift_y, alpha;
  int64_t count, size;

  // sizes: units, statistics, units of r, averages
  explicit StatRu(const Call& c) : Cell<S>(c), count(c.size[4]), size(c.size[2]) {
    R = block(c.size[3]), E = block(size), output = Y = block(units);
    M = state(count * size), K = gradient(count * size);
    reads_input(E);
    reads = link(2, From::was, M, R), mixes = link(3, From::now, R, E);
    shows = link(4, From::now, M, Y), shows->given = K;
    vector(shift_r, 5, R.size), vector(shift_y, 6, units), vector(alpha, 7, count, false);
  }

  Block part(Block whole, int64_t i) const { return {whole.offset + i * size, size}; }

  static void rectify(const Step<S>& s, Block b, const Weights<S>& shift) {
    s.each(b.size, [&](At<S> at) { at.now.put(b, positive(at.now(b) + at(shift))); });
  }

  static void rectify_back(const Step<S>& s, Block b, const Weights<S>& shift) {
    s.each(b.size, [&](At<S> at) {
      V d = where_positive(at.now(b), at.grad(b));
      at.grad.put(b, d), at.grad.put(shift.gradient, d);
    });
  }

  void forward(const Step<S>& s) const override {
    s.set(reads);
    rectify(s, R, shift_r);
    s.add(mixes);
    s.each(size, [&](At<S> at) {
      V e = positive(at.now(E));
      int64_t n = size - at.unit;
      at.now.put(E, e);
      for (int64_t i = 0; i < count; i++) {
        V m = alpha.value[i] * at.was.some(part(M, i), n) + (1 - alpha.value[i]) * e;
        at.now.put_some(part(M, i), m, n);
      }
    });
    s.set(shows);
    rectify(s, Y, shift_y);
  }

  void backward(const Step<S>& s) const override {
    rectify_back(s, Y, shift_y);
    s.set_back(shows);
    s.each(size, [&](At<S> at) {
      V d_e{};
      int64_t n = size - at.unit;
      for (int64_t i = 0; i < count; i++) {
        V d = at.carry.some(part(M, i), n) + at.grad.some(part(K, i), n);
        d_e += (1 - alpha.value[i]) * d;
        at.carry.put_some(part(M, i), alpha.value[i] * d, n);
      }
      at.grad.put(E, where_positive(at.now(E), d_e));
    });
    s.set_back(mixes);
    rectify_back(s, R, shift_r);
    s.add_back(reads);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
