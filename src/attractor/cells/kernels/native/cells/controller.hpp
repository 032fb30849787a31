#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// What cells with an external memory have in common: h = g(x, h, r), a network that also sees what
// was read.
//
// lstm: i, f, o = sigmoid and a = tanh of W x + U h + W_r r + b; c = f c + i a; h = o tanh c
// gru: i, f = sigmoid likewise, a = tanh of W x + U (i h) + W_r r + b; h = (1 - f) h + f a
// rnn: h = a;  ff: the same without U h
template <class S>
struct Controlled : Cell<S> {
  ATTRACTOR_CELL;
  enum Kind { lstm, gru, rnn, ff };
  const Kind kind;
  Block I, F, A, O;  // of which a cell has those that it needs
  Block N, R, T;     // N is a copy of the new h, R is what was read, T is i h
  Block H, C;
  Link<S>*U = nullptr, *again = nullptr, *seen = nullptr;

  // weights 2 to 4: U, U of the candidate if that is another, W_r
  explicit Controlled(const Call& c) : Cell<S>(c), kind(Kind(int(c.number[0]))) {
    I = block(kind < rnn ? units : 0), F = block(kind < rnn ? units : 0);
    A = block(units), O = block(kind == lstm ? units : 0);
  }

  // To be called when the blocks that read the input have been declared.
  void sees(int64_t features) {
    N = block(units), R = block(features), T = block(kind == gru ? units : 0);
  }

  // To be called when all blocks have been declared, before other states.
  void remembers() {
    output = H = state(units), C = state(units);
    if (kind == gru)
      U = link(2, From::was, H, I, F), again = link(3, From::now, T, A);
    else if (kind != ff)
      U = link(2, From::was, H, I, F, A, O);
    seen = link(4, From::now, R, I, F, A, O);
  }

  void move(const Step<S>& s) const {
    if (U) s.add(U);
    s.add(seen);
    if (kind == gru) {
      s.each(units, [&](At<S> at) {
        V i = sigmoid(at.now(I));
        at.now.put(I, i), at.now.put(F, sigmoid(at.now(F))), at.now.put(T, i * at.was(H));
      });
      s.add(again);
    }
    s.each(units, [&](At<S> at) {
      V a = tanh(at.now(A)), h = a, c = at.was(C);
      if (kind == lstm) {
        V i = sigmoid(at.now(I)), f = sigmoid(at.now(F)), o = sigmoid(at.now(O));
        c = f * c + i * a, h = o * tanh(c);
        at.now.put(I, i), at.now.put(F, f), at.now.put(O, o);
      } else if (kind == gru) {
        V f = at.now(F);
        h = (1 - f) * at.was(H) + f * a;
      }
      at.now.put(A, a), at.now.put(C, c), at.now.put(N, h), at.now.put(H, h);
    });
  }

  // From the gradient of N to those of the sums, of R, and of the state before.
  void move_back(const Step<S>& s) const {
    s.each(units, [&](At<S> at) {
      V a = at.now(A), d = at.grad(N), d_a = d;
      if (kind == lstm) {
        V i = at.now(I), f = at.now(F), o = at.now(O), shown = tanh(at.now(C));
        V d_c = at.carry(C) + d * o * (1 - shown * shown);
        at.grad.put(I, d_c * a * i * (1 - i)), at.grad.put(F, d_c * at.was(C) * f * (1 - f));
        at.grad.put(O, d * shown * o * (1 - o)), at.carry.put(C, d_c * f);
        d_a = d_c * i;
      } else if (kind == gru) {
        V f = at.now(F), h = at.was(H);
        at.grad.put(F, d * (a - h) * f * (1 - f)), at.carry.put(H, d * (1 - f));
        d_a = d * f;
      } else if (kind == ff) {
        at.carry.put(H, V{});
      }
      at.grad.put(A, d_a * (1 - a * a));
    });
    if (kind == gru) {
      s.set_back(again);
      s.each(units, [&](At<S> at) {
        V i = at.now(I), d = at.grad(T);
        at.grad.put(I, d * at.was(H) * i * (1 - i)), at.carry.add(H, d * i);
      });
      s.add_back(U);
    } else if (U) {
      s.set_back(U);
    }
    s.set_back(seen);
  }
};

#define ATTRACTOR_CONTROLLED                                              \
  ATTRACTOR_CELL;                                                         \
  using Controlled<S>::I, Controlled<S>::F, Controlled<S>::A;             \
  using Controlled<S>::O, Controlled<S>::N, Controlled<S>::R;             \
  using Controlled<S>::H, Controlled<S>::sees, Controlled<S>::remembers;  \
  using Controlled<S>::move, Controlled<S>::move_back

}  // namespace attractor::ATTRACTOR_PATH
