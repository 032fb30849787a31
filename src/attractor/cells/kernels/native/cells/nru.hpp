#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// h = ReLU(W x + U h + M m + b);  contents, p, q = rows of heads reading x, the new h and m
// m = m + sum of contents v written - sum of contents v erased
//
// v, of each head, is a block of vec(p q^T) over its L5 norm. A head's block is whole rows of the
// product, so that the norm is that of its part of p times that of q, and all heads together write
// the one outer product w q^T, w = sum over heads of contents / norm times their part of p.
//
// With a ReLU on contents and on the outer product, positive entries of p meet those of q, and
// negative ones meet negative ones: relu(p q^T) is a sum of two outer products. There are then two
// w, one for each sign of q, and the fifth power of the norm is a sum of two products of powers.
template <class S, bool rectifies>
struct AnyNru : Cell<S> {
  ATTRACTOR_CELL;
  Block N, K, P, Q, D, H, M;  // N is a copy of h, K are the contents, D the norms of heads' blocks;
                              // writing comes before erasing
  static constexpr int64_t kMost = 1024;  // a head's part of p is at most this long
  Link<S>*hidden, *memory, *heads;
  int64_t count, side, part;  // heads, length of p and q, of a head's part of p
  S share;
  bool scales;  // erase in proportion

  // sizes: units, memory, heads, side
  explicit AnyNru(const Call& c)
      : Cell<S>(c), count(c.size[3]), side(c.size[4]), part(side / count) {
    share = S(c.number[0]), scales = c.number[1] != 0;
    N = block(units), K = block(2 * count), P = block(2 * side), Q = block(2 * side);
    D = block(2 * count);
    output = H = state(units), M = state(c.size[2]);
    reads_input(N, K, P, Q);
    hidden = link(2, From::was, H, N), memory = link(3, From::was, M, N, K, P, Q);
    heads = link(4, From::now, N, K, P, Q);
  }

  static S fourth(S x) { return x * x * x * x; }

  // Of all entries (sign 0), or with ReLU of those of one sign, how large one is.
  static S size(S x, int sign) { return sign ? (x * sign > 0 ? x * sign : 0) : x < 0 ? -x : x; }
  static constexpr int kSides = rectifies ? 2 : 1;
  static constexpr int sign(int side) { return rectifies ? 1 - 2 * side : 0; }
  static int side_of(S x) { return rectifies && x < 0; }
  static bool flat(S x) { return rectifies && x == 0; }  // where the ReLU has no slope

  // An L5 norm, in a form that does not overflow: the largest entry, and the sum over it.
  struct Norm {
    S largest = 0, sum = 0, inverse = 0;  // of the sum and the largest
    Norm() = default;
    Norm(const S* v, int64_t n, int sign) {
      for (int64_t i = 0; i < n; i++) {
        S x = size(v[i], sign);
        largest = x > largest ? x : largest;
      }
      for (int64_t i = 0; largest > 0 && i < n; i++) {
        S x = size(v[i], sign) / largest;
        sum += fourth(x) * x;
      }
      for (int64_t i = 0; i < n; i++)
        if (v[i] != v[i]) largest = v[i];  // a NaN stays one
      inverse = 1 / (sum * largest);
    }
    // What entry x has in the gradient of the norm's logarithm.
    S slope(S x) const { return fourth(x / largest) * (x < 0 ? -inverse : inverse); }
  };

  // The norm of a head's block is `most` times the fifth root of `sum`; `share` is what each sign
  // has in its fifth power.
  struct Size {
    Norm of_p[kSides];
    S most = 0, sum = 0, share[kSides] = {};

    Size(const AnyNru& cell, const S* p, const Norm* of_q) {
      S product[kSides];
      for (int i = 0; i < kSides; i++) {
        of_p[i] = Norm(p, cell.part, sign(i));
        product[i] = of_p[i].largest * of_q[i].largest;
        most = product[i] <= most ? most : product[i];
      }
      for (int i = 0; !(most <= 0) && i < kSides; i++) {
        S x = rectifies ? product[i] / most : 1;
        sum += share[i] = fourth(x) * x * of_p[i].sum * of_q[i].sum;
      }
      for (int i = 0; i < kSides; i++) share[i] = rectifies ? share[i] / sum : 1;
    }
  };
  static constexpr S kLeast = S(1e-12);  // that a norm is taken to be

  // Weights of the rows of an outer product, with ReLU where q is not negative and where it is.
  struct Rows {
    S of[kSides][kMost];
  };

  // One of the two outer products of a row: what it is, and what its gradient gives to its parts.
  struct Product {
    const S *contents, *p, *q;
    S* norms;
    const AnyNru& cell;
    Norm of_q[kSides];

    Product(const AnyNru& nru, S* row, int which)
        : contents(row + nru.K.offset + which * nru.count),
          p(row + nru.P.offset + which * nru.side),
          q(row + nru.Q.offset + which * nru.side),
          norms(row + nru.D.offset + which * nru.count),
          cell(nru) {
      for (int i = 0; i < kSides; i++) of_q[i] = Norm(q, cell.side, sign(i));
    }

    S content(int64_t h) const {
      return cell.share * (rectifies && contents[h] < 0 ? 0 : contents[h]);
    }

    void measure() const {
      constexpr int W = kWidth<S>;
      for (int64_t h = 0; h < cell.count; h += W) {
        S most[W] = {}, sum[W] = {};
        for (int64_t i = 0; i < least(W, cell.count - h); i++) {
          Size size(cell, p + (h + i) * cell.part, of_q);
          most[i] = size.most, sum[i] = size.sum;
        }
        V norm = load(most) * exp_of<S>(log_of<S>(load(sum)) / 5);
        store_some(norms + h, norm <= kLeast ? all<S>(kLeast) : norm, cell.count - h);
      }
    }

    void weigh(Rows& w) const {
      for (int i = 0; i < kSides; i++) memset(w.of[i], 0, cell.part * sizeof(S));
      for (int64_t h = 0; h < cell.count; h++) {
        const S* own = p + h * cell.part;
        S scale = content(h) / norms[h];
        for (int64_t r = 0; r < cell.part; r++) w.of[side_of(own[r])][r] += scale * own[r];
      }
    }

    // From the gradient of w to those of contents, p and q; that of q is added to.
    void give(const Rows& d_w, S* d_contents, S* d_p, S* d_q) const {
      S of_logs[kSides] = {};  // what the norms of q get of those of all blocks
      for (int64_t h = 0; h < cell.count; h++) {
        const S* own = p + h * cell.part;
        Size size(cell, own, of_q);
        S scale = content(h) / norms[h], d = 0;
        bool free = !(norms[h] <= kLeast);
        for (int64_t r = 0; r < cell.part; r++) d += d_w.of[side_of(own[r])][r] * own[r];
        d_contents[h] = rectifies && contents[h] <= 0 ? 0 : cell.share * d / norms[h];
        S d_log = -scale * d;  // of the norm's logarithm
        for (int64_t r = 0; r < cell.part; r++) {
          int side = side_of(own[r]);
          S given = scale * d_w.of[side][r];
          if (free) given += d_log * size.share[side] * size.of_p[side].slope(own[r]);
          d_p[h * cell.part + r] = flat(own[r]) ? 0 : given;
        }
        for (int i = 0; free && i < kSides; i++) of_logs[i] += d_log * size.share[i];
      }
      for (int64_t j = 0; j < cell.side; j++) {
        int side = side_of(q[j]);
        if (of_q[side].largest > 0) d_q[j] += of_logs[side] * of_q[side].slope(q[j]);
        if (flat(q[j])) d_q[j] = 0;
      }
    }
  };

  static V of_sign(const Rows& w, int64_t r, V q) {
    V above = all<S>(w.of[0][r]);
    return rectifies ? (q < 0 ? all<S>(w.of[kSides - 1][r]) : above) : above;
  }
  static void split(V q, V v, V* to) {
    if (!rectifies) return void(to[0] += v);
    to[0] += q < 0 ? V{} : v, to[kSides - 1] += q < 0 ? v : V{};
  }

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
      Rows w, e;
      write.measure(), erase.measure();
      write.weigh(w), erase.weigh(e);
      for (int64_t r = 0; r < part; r++)
        for (int64_t j = 0; j < side; j += kWidth<S>) {
          int64_t n = side - j, at = r * side + j;
          V m = load_some(old + at, n), q = load_some(write.q + j, n);
          V gone = load_some(erase.q + j, n);
          gone *= of_sign(e, r, gone);
          if (scales) gone *= m;
          store_some(now + M.offset + at, m + of_sign(w, r, q) * q - gone, n);
        }
    }
  }

  void backward(const Step<S>& s) const override {
    for (int64_t i = 0; i < s.rows; i++) {
      const S* old = s.was + i * s.width + M.offset;
      S *now = s.now + i * s.width, *grad = s.grad + i * s.grad_width;
      S* d_m = s.carry + i * s.carry_width + M.offset;
      Product write(*this, now, 0), erase(*this, now, 1);
      Rows w, e, d_w, d_e;
      write.weigh(w), erase.weigh(e);
      S *d_q = grad + Q.offset, *d_z = d_q + side;
      for (int64_t j = 0; j < 2 * side; j++) d_q[j] = 0;
      for (int64_t r = 0; r < part; r++) {
        V total_w[kSides]{}, total_e[kSides]{};
        for (int64_t j = 0; j < side; j += kWidth<S>) {
          int64_t n = side - j, at = r * side + j;
          V d = load_some(d_m + at, n), gone = -d;
          V q = load_some(write.q + j, n), z = load_some(erase.q + j, n);
          if (scales) gone *= load_some(old + at, n);
          split(q, d * q, total_w), split(z, gone * z, total_e);
          store_some(d_q + j, load_some(d_q + j, n) + d * of_sign(w, r, q), n);
          store_some(d_z + j, load_some(d_z + j, n) + gone * of_sign(e, r, z), n);
          if (scales) store_some(d_m + at, d * (1 - of_sign(e, r, z) * z), n);
        }
        for (int k = 0; k < kSides; k++)
          d_w.of[k][r] = total<S>(total_w[k]), d_e.of[k][r] = total<S>(total_e[k]);
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

template <class S>
struct Nru : AnyNru<S, false> {
  static constexpr const char* name = "nru";
  using AnyNru<S, false>::AnyNru;
};

template <class S>
struct ReluNru : AnyNru<S, true> {
  static constexpr const char* name = "nru_relu";
  using AnyNru<S, true>::AnyNru;
};

}  // namespace attractor::ATTRACTOR_PATH
