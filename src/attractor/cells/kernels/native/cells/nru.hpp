#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// h = ReLU(W x + U h + M m + b);  contents, p, q = rows of heads reading x, the new h and m
// m = m + sum of contents v written - sum of contents v erased
//
// v, of each head, is a block of vec(p q^T) over its L5 norm. A head's block is whole rows of the
// product, so that the norm is that of its part of p times that of q, and all heads together write
// the one outer product w q^T, w = sum over heads of contents / norm times their part of p.
template <class S>
struct Nru : Cell<S> {
  ATTRACTOR_CELL;
  static constexpr const char* name = "nru";
  Block N, K, P, Q, H, M;  // N is a copy of h; K are the contents; writing comes before erasing
  Link<S>*hidden, *memory, *heads;
  int64_t count, side, part;  // heads, length of p and q, of a head's part of p
  S share;
  bool scales;  // erase in proportion

  // sizes: units, memory, heads, side
  explicit Nru(const Call& c)
      : Cell<S>(c), count(c.size[3]), side(c.size[4]), part(side / count) {
    share = S(c.number[0]), scales = c.number[1] != 0;
    N = block(units), K = block(2 * count), P = block(2 * side), Q = block(2 * side);
    output = H = state(units), M = state(c.size[2]);
    reads_input(N, K, P, Q);
    hidden = link(2, From::was, H, N), memory = link(3, From::was, M, N, K, P, Q);
    heads = link(4, From::now, N, K, P, Q);
  }

  static S fourth(S x) { return x * x * x * x; }
  static S size(S x) { return x < 0 ? -x : x; }

  // An L5 norm, in a form that does not overflow: the largest entry, and the sum over it.
  struct Norm {
    S largest, sum;
    Norm(const S* v, int64_t n) : largest(0), sum(0) {
      for (int64_t i = 0; i < n; i++) largest = size(v[i]) > largest ? size(v[i]) : largest;
      for (int64_t i = 0; largest > 0 && i < n; i++)
        sum += fourth(v[i] / largest) * size(v[i] / largest);
      for (int64_t i = 0; i < n; i++)
        if (v[i] != v[i]) largest = v[i];  // a NaN stays one
    }
    // What entry x has in the gradient of the norm's logarithm.
    S slope(S x) const { return fourth(x / largest) * (x < 0 ? -1 : 1) / (sum * largest); }
  };

  // One of the two outer products of a row: what it is, and what its gradient gives to its parts.
  struct Product {
    const S *contents, *p, *q;
    const Nru& cell;
    Norm of_q;

    Product(const Nru& nru, const S* row, int which)
        : contents(row + nru.K.offset + which * nru.count),
          p(row + nru.P.offset + which * nru.side),
          q(row + nru.Q.offset + which * nru.side),
          cell(nru),
          of_q(q, nru.side) {}

    // The norm of a head's block, which is at least 1e-12; `free` says that it is more.
    S norm(const Norm& of_p, bool& free) const {
      S n = of_p.largest * of_q.largest *
            S(__builtin_pow(double(of_p.sum) * double(of_q.sum), 0.2));
      free = !(n <= S(1e-12));
      return free ? n : S(1e-12);
    }

    // w, as long as a head's part of p.
    void weigh(S* w) const {
      for (int64_t r = 0; r < cell.part; r++) w[r] = 0;
      for (int64_t h = 0; h < cell.count; h++) {
        const S* own = p + h * cell.part;
        bool free;
        S scale = cell.share * contents[h] / norm(Norm(own, cell.part), free);
        for (int64_t r = 0; r < cell.part; r++) w[r] += scale * own[r];
      }
    }

    // From the gradient of w to those of contents, p and q; that of q is added to.
    void give(const S* d_w, S* d_contents, S* d_p, S* d_q) const {
      for (int64_t h = 0; h < cell.count; h++) {
        const S* own = p + h * cell.part;
        bool free;
        Norm of_p(own, cell.part);
        S n = norm(of_p, free), content = cell.share * contents[h], d = 0;
        for (int64_t r = 0; r < cell.part; r++) d += d_w[r] * own[r];
        d_contents[h] = cell.share * d / n;
        S d_log = free ? -content * d / n : 0;  // of the norm's logarithm
        for (int64_t r = 0; r < cell.part; r++)
          d_p[h * cell.part + r] = content / n * d_w[r] + (free ? d_log * of_p.slope(own[r]) : 0);
        for (int64_t j = 0; free && j < cell.side; j++) d_q[j] += d_log * of_q.slope(q[j]);
      }
    }
  };

  static constexpr int64_t kMost = 1024;  // parts of p and q are at most this long

  void forward(const Step<S>& s) const override {
    s.add(memory), s.add(hidden);
    s.each(units, [&](At<S> at) {
      V h = positive(at.now(N));
      at.now.put(N, h), at.now.put(H, h);
    });
    s.add(heads);
    for (int64_t i = 0; i < s.rows; i++) {
      S* now = s.now + i * s.width;
      const S* old = s.was + i * s.width + M.offset;
      Product write(*this, now, 0), erase(*this, now, 1);
      S w[kMost], e[kMost];
      write.weigh(w), erase.weigh(e);
      for (int64_t r = 0; r < part; r++)
        for (int64_t j = 0; j < side; j += kWidth<S>) {
          int64_t n = side - j, at = r * side + j;
          V m = load_some(old + at, n), gone = e[r] * load_some(erase.q + j, n);
          if (scales) gone *= m;
          store_some(now + M.offset + at, m + w[r] * load_some(write.q + j, n) - gone, n);
        }
    }
  }

  void backward(const Step<S>& s) const override {
    for (int64_t i = 0; i < s.rows; i++) {
      const S *now = s.now + i * s.width, *old = s.was + i * s.width + M.offset;
      S *grad = s.grad + i * s.grad_width, *d_m = s.carry + i * s.carry_width + M.offset;
      Product write(*this, now, 0), erase(*this, now, 1);
      S w[kMost], e[kMost], d_w[kMost], d_e[kMost];
      write.weigh(w), erase.weigh(e);
      S *d_q = grad + Q.offset, *d_z = d_q + side;
      for (int64_t j = 0; j < 2 * side; j++) d_q[j] = 0;
      for (int64_t r = 0; r < part; r++) {
        V total_w{}, total_e{};
        for (int64_t j = 0; j < side; j += kWidth<S>) {
          int64_t n = side - j, at = r * side + j;
          V d = load_some(d_m + at, n), gone = -d;
          V z = load_some(erase.q + j, n);
          if (scales) gone *= load_some(old + at, n);
          total_w += d * load_some(write.q + j, n), total_e += gone * z;
          store_some(d_q + j, load_some(d_q + j, n) + d * w[r], n);
          store_some(d_z + j, load_some(d_z + j, n) + gone * e[r], n);
          if (scales) store_some(d_m + at, d * (1 - e[r] * z), n);
        }
        d_w[r] = d_e[r] = 0;
        for (int v = 0; v < kWidth<S>; v++) d_w[r] += total_w[v], d_e[r] += total_e[v];
      }
      write.give(d_w, grad + K.offset, grad + P.offset, d_q);
      erase.give(d_e, grad + K.offset + count, grad + P.offset + side, d_z);
      clear_padding(grad, K), clear_padding(grad, P), clear_padding(grad, Q);
    }
    s.each(units, [&](At<S> at) { at.grad.put(N, at.carry(H)); });
    s.add_back(heads);
    s.each(units, [&](At<S> at) { at.grad.put(N, where_positive(at.now(N), at.grad(N))); });
    s.set_back(hidden), s.add_back(memory);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
