#pragma once

#include "addressing.hpp"
#include "controller.hpp"

namespace attractor::ATTRACTOR_PATH {

// Each head has k, beta, g, s, gamma of W x + U h + b, from which it finds its weights:
//   w^c = softmax(beta cos(k, M));  w^g = g w^c + (1 - g) w
//   w~[i] = sum of s[j] w^g[i - j];  w = softmax(gamma log w~)
// r = M w of the heads that read;  h = g(x, h, r)
// M = M (1 - w e) + w a of the heads that write, whose numbers see the new h
template <class S>
struct Ntm : Controlled<S> {
  ATTRACTOR_CONTROLLED;
  static constexpr const char* name = "ntm";
  static constexpr S floor = S(1e-8);
  const int64_t n, size, features, readers, writers, width, rows;  // rows: numbers of a head
  const bool before;  // whether writing heads find their weights before h moves
  Block K, L, E;      // what readers and writers address by, what writers erase and add
  Block X, Y, Z;      // found: one over lengths, and of each reader and writer what `address` keeps
  Block M, WR, WW;
  Block P;            // room for gradients
  Link<S>*reads, *aims, *writes;

  // sizes: units, places, features, heads that read and write, shifts
  explicit Ntm(const Call& c)
      : Controlled<S>(c), n(c.size[2]), size(padded<S>(n)), features(c.size[3]),
        readers(c.size[4]), writers(c.size[5]), width(c.size[6]), rows(features + width + 3),
        before(c.number[1] != 0) {
    K = block(readers * rows), L = block(writers * rows), E = block(writers * 2 * features);
    reads_input(I, F, A, O, K, L, E);
    sees(readers * features);
    X = block(size), Y = block(readers * 3 * size), Z = block(writers * 3 * size);
    remembers();
    M = state(n, features), WR = state(n, readers), WW = state(n, writers);
    P = gradient(3 * size);
    reads = link(5, From::was, H, K);
    aims = before ? link(6, From::was, H, L) : link(6, From::now, N, L);
    writes = link(7, From::now, N, E);
  }

  Memory<const S> memory(const S* was) const { return {was + M.offset, features, n, size}; }

  // A head's numbers become beta, g, s and gamma themselves; `found` keeps cosines, w^c and w~.
  void address(S* head, const Memory<const S>& m, const S* inverse, const S* last, S* found,
               S* w) const {
    S *beta = head + features, *g = beta + 1, *s = g + 1, *gamma = s + width;
    *beta = softplus(*beta), *g = sigmoid_of_one(*g), *gamma = 1 + softplus(*gamma);
    softmax_few(s, width);
    S *cos = found, *w_c = found + size, *moved = found + 2 * size;
    cosine(head, m, inverse, floor, cos);
    for (int64_t i = 0; i < size; i += kWidth<S>) store(w_c + i, *beta * load(cos + i));
    softmax(w_c, n, size, w_c);
    gated(*g, w_c, last, w);
    clear(moved, size);
    for (int64_t j = 0; j < width; j++) add_moved(moved, w, s[j], j - width / 2, n);
    for (int64_t i = 0; i < size; i += kWidth<S>)
      store(w + i, *gamma * log_of<S>(least_of(moved + i)));
    softmax(w, n, size, w);
  }

  void gated(S g, const S* w_c, const S* last, S* w_g) const {
    for (int64_t i = 0; i < size; i += kWidth<S>)
      store(w_g + i, load(last + i) + g * (load(w_c + i) - load(last + i)));
  }

  static V least_of(const S* v) { return load(v) < S(1e-16) ? all<S>(S(1e-16)) : load(v); }

  // From the gradient of a head's weights, which becomes that of its last ones, to those of its
  // numbers and, added, of the memory.
  void address_back(const S* head, const Memory<const S>& m, const S* inverse, const S* last,
                    const S* found, const S* w, S* d_w, S* d_head, const Memory<S>& d_m,
                    S* room) const {
    S beta = head[features], g = head[features + 1], gamma = head[features + width + 2];
    const S *s = head + features + 2, *cos = found, *w_c = found + size, *moved = found + 2 * size;
    S *d_s = d_head + features + 2, *w_g = room, *d = room + size, *along = room + 2 * size;
    V of_gamma{}, of_g{};
    softmax_back(w, d_w, size, d_w);
    for (int64_t i = 0; i < size; i += kWidth<S>) {
      V power = load(d_w + i), v = load(moved + i);
      of_gamma += power * log_of<S>(least_of(moved + i));
      store(d_w + i, v < S(1e-16) ? V{} : gamma * power / v);
    }
    gated(g, w_c, last, w_g);
    clear(d, size);
    for (int64_t j = 0; j < width; j++) {
      d_s[j] = dot_moved(d_w, w_g, j - width / 2, n);
      add_moved(d, d_w, s[j], width / 2 - j, n);
    }
    softmax_few_back(s, d_s, width);
    for (int64_t i = 0; i < size; i += kWidth<S>) {
      V of = load(d + i);
      of_g += of * (load(w_c + i) - load(last + i));
      store(d_w + i, (1 - g) * of), store(d + i, g * of);
    }
    softmax_back(w_c, d, size, d);
    d_head[features] = dot(d, cos, size) * softplus_slope(beta);
    d_head[features + 1] = total<S>(of_g) * g * (1 - g);
    d_head[features + width + 2] = total<S>(of_gamma) * softplus_slope(gamma - 1);
    for (int64_t i = 0; i < size; i += kWidth<S>) store(d + i, beta * load(d + i));
    cosine_back(head, m, inverse, floor, cos, d, d_head, d_m, along);
  }

  void forward(const Step<S>& s) const override {
    s.add(reads);
    if (before) s.add(aims);
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      const S* was = s.was + r * s.width;
      inverse_lengths(memory(was), floor, now + X.offset);
      for (int64_t h = 0; h < readers; h++) {
        S* w = now + WR.offset + h * size;
        address(now + K.offset + h * rows, memory(was), now + X.offset,
                was + WR.offset + h * size, now + Y.offset + h * 3 * size, w);
        read(memory(was), w, now + R.offset + h * features);
      }
      clear_padding(now, R);
    }
    move(s);
    if (!before) s.add(aims);
    s.add(writes);
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      const S* was = s.was + r * s.width;
      for (int64_t h = 0; h < writers; h++) {
        S* e = now + E.offset + h * 2 * features;
        address(now + L.offset + h * rows, memory(was), now + X.offset,
                was + WW.offset + h * size, now + Z.offset + h * 3 * size,
                now + WW.offset + h * size);
        for (int64_t j = 0; j < features; j++) e[j] = sigmoid_of_one(e[j]);
      }
      erase_and_add(memory(was), written_by(now), now + M.offset);
    }
  }

  Writers<const S> written_by(const S* now) const {
    const S* e = now + E.offset;
    return {writers, 2 * features, now + WW.offset, e, e + features};
  }

  void backward(const Step<S>& s) const override {
    for (int64_t r = 0; r < s.rows; r++) {
      const S *now = s.now + r * s.width, *was = s.was + r * s.width;
      S *grad = s.grad + r * s.grad_width, *carry = s.carry + r * s.carry_width;
      S *d_e = grad + E.offset, *d_w = carry + WW.offset;
      Memory<S> d_m{carry + M.offset, features, n, size};
      erase_and_add_back(memory(was), written_by(now), carry + M.offset,
                         {writers, 2 * features, d_w, d_e, d_e + features});
      for (int64_t h = 0; h < writers; h++) {
        const S* e = now + E.offset + h * 2 * features;
        for (int64_t j = 0; j < features; j++) d_e[h * 2 * features + j] *= e[j] * (1 - e[j]);
        address_back(now + L.offset + h * rows, memory(was), now + X.offset,
                     was + WW.offset + h * size, now + Z.offset + h * 3 * size,
                     now + WW.offset + h * size, d_w + h * size, grad + L.offset + h * rows, d_m,
                     grad + P.offset);
      }
      clear_padding(grad, E), clear_padding(grad, L);
    }
    s.each(units, [&](At<S> at) { at.grad.put(N, at.carry(H)); });
    s.add_back(writes);
    if (!before) s.add_back(aims);
    move_back(s);
    for (int64_t r = 0; r < s.rows; r++) {
      const S *now = s.now + r * s.width, *was = s.was + r * s.width;
      S *grad = s.grad + r * s.grad_width, *carry = s.carry + r * s.carry_width;
      Memory<S> d_m{carry + M.offset, features, n, size};
      for (int64_t h = 0; h < readers; h++) {
        const S* w = now + WR.offset + h * size;
        S* d_w = carry + WR.offset + h * size;
        read_back(memory(was), w, grad + R.offset + h * features, d_w, d_m);
        address_back(now + K.offset + h * rows, memory(was), now + X.offset,
                     was + WR.offset + h * size, now + Y.offset + h * 3 * size, w, d_w,
                     grad + K.offset + h * rows, d_m, grad + P.offset);
      }
      clear_padding(grad, K);
    }
    s.add_back(reads);
    if (before) s.add_back(aims);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
