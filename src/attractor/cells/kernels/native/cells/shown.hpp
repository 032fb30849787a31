#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// What a cell shows of its cell state c, of which its output is a gate's share: tanh c, or with a
// layer norm tanh LN(c), of which all units are needed first.
template <class S>
struct Shown {
  using V = Vector<S>;
  Norm<S> norm;
  Block seen{};  // on the way back

  void join(Cell<S>& cell, int64_t units) {
    cell.join(norm, kMemoryNorm, units);
    if (norm) seen = cell.gradient(units);
  }

  // The output again, now that all of c is there.
  void forward(const Step<S>& s, Block c, Block gate, Block output) const {
    if (!norm) return;
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      memcpy(now + norm.normal.offset, now + c.offset, padded<S>(c.size) * sizeof(S));
      norm.apply(now);
    }
    s.each(c.size, [&](At<S> at) {
      at.now.put(output, at.now(gate) * tanh(norm(at.now.p - at.unit, at.unit)));
    });
  }

  // Before a step back, whose output has the gradient d(at).
  template <class D>
  void backward(const Step<S>& s, Block gate, D d) const {
    if (!norm) return;
    s.each(norm.normal.size, [&](At<S> at) {
      const S* now = at.now.p - at.unit;
      V shown = tanh(norm(now, at.unit));
      at.grad.put(seen, shown);
      norm.take(now, at.grad.p - at.unit, at.unit, d(at) * at.now(gate) * (1 - shown * shown));
    });
    for (int64_t r = 0; r < s.rows; r++)
      norm.give(s.now + r * s.width, s.grad + r * s.grad_width);
  }

  // In it: what was shown, and what c gets of the output's gradient d.
  V operator()(const At<S>& at, V c) const { return norm ? at.grad(seen) : tanh(c); }
  V back(const At<S>& at, V d, V gate, V shown) const {
    return norm ? at.grad(norm.given) : d * gate * (1 - shown * shown);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
