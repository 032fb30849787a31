#pragma once

#include "addressing.hpp"
#include "controller.hpp"

namespace attractor::ATTRACTOR_PATH {

// The memory is M = [A, C], where no step changes A. Each of two heads has k, beta and gamma of
// W x + U h + b, from which it finds its weights, by v less where it was of late:
//   z = beta cos(k, M);  w = softmax(z - gamma v), or one place of it;  v = 0.1 v + 0.9 z
// r = M w of the head that reads;  h = g(x, h, r)
// y = ReLU(W_m h + alpha W_x x);  C = C (1 - w e) + w y of the head that writes
// The last place may be one that is neither read nor written.
template <class S>
struct Dntm : Controlled<S> {
  ATTRACTOR_CONTROLLED;
  static constexpr const char* name = "dntm";
  static constexpr S floor = S(1e-4);
  const int64_t n, size, fixed, contents, features, rows;  // rows: numbers of a head
  const bool before, recent, idle, discrete;  // recent: has gamma; idle: the last place is
  Block K, L, E, X, Y;  // what heads address by; e and alpha; W_x x; W_m h, then y
  Block Q, FR, FW;      // found: one over lengths, and of each head what `address` keeps
  Block M, VR, VW, B;   // B is the logarithm of how likely the chosen places were
  Block D, P;           // gradients: of the weights of a head, and room
  Weights<S> addresses;  // A
  Link<S>*reads, *aims, *writes, *makes;

  // sizes: units, places, features of A and of C
  explicit Dntm(const Call& c)
      : Controlled<S>(c), n(c.size[2]), size(padded<S>(n)), fixed(c.size[3]), contents(c.size[4]),
        features(fixed + contents), rows(features + 1 + (c.number[2] != 0)),
        before(c.number[1] != 0), recent(c.number[2] != 0), idle(c.number[3] != 0),
        discrete(c.number[4] != 0) {
    noise = 2 * n;
    K = block(rows), L = block(rows), E = block(contents + 1), X = block(contents);
    reads_input(I, F, A, O, K, L, E, X);
    sees(features);
    Y = block(contents), Q = block(size), FR = block(3 * size), FW = block(3 * size);
    remembers();
    M = state(n, contents), VR = state(n), VW = state(n), B = state(1);
    D = gradient(size), P = gradient(size);
    reads = link(5, From::was, H, K);
    aims = before ? link(6, From::was, H, L) : link(6, From::now, N, L);
    writes = link(7, From::now, N, E), makes = link(8, From::now, N, Y);
    vector(addresses, 9, n, true, fixed);
  }

  Memory<const S> memory(const S* was) const {
    return {was + M.offset, features, n, size, addresses.value, fixed};
  }

  // A head's numbers become beta and gamma themselves; `found` keeps cosines, the softmax and w.
  // Returns the logarithm of how likely the chosen place was, zero where none is.
  S address(S* head, const Memory<const S>& m, const S* inverse, const S* v, const S* drawn,
            S* found, S* next) const {
    S *beta = head + features, *gamma = beta + 1;
    *beta = 1 + softplus(*beta);
    if (recent) *gamma = sigmoid_of_one(*gamma);
    S *cos = found, *soft = found + size, *w = found + 2 * size, likely = 0;
    cosine(head, m, inverse, floor, cos);
    for (int64_t i = 0; i < size; i += kWidth<S>) {
      V z = *beta * load(cos + i), old = load(v + i);
      store(soft + i, recent ? z - *gamma * old : z), store(next + i, z + S(0.1) * (old - z));
    }
    if (discrete) {
      int64_t chosen = largest_at(soft, drawn, n);
      likely = soft[chosen], likely -= softmax(soft, n, size, soft);
      clear(w, size), w[chosen] = 1;
    } else {
      softmax(soft, n, size, soft);
      memcpy(w, soft, size * sizeof(S));
    }
    if (idle) w[n - 1] = 0;
    return likely;
  }

  // From the gradients of a head's weights, of v, which becomes that of the last one, and of how
  // likely its choice was, to those of its numbers and, added, of the memory.
  void address_back(const S* head, const Memory<const S>& m, const S* inverse, const S* v,
                    const S* found, S* d_w, S* d_v, S d_likely, S* d_head, const Memory<S>& d_m,
                    S* along) const {
    S beta = head[features], gamma = recent ? head[features + 1] : 0;
    const S *cos = found, *soft = found + size, *w = found + 2 * size;
    if (discrete) {
      int64_t chosen = largest_at<S>(w, nullptr, n);
      if (idle && !w[chosen]) chosen = n - 1;
      for (int64_t i = 0; i < size; i += kWidth<S>) store(d_w + i, -d_likely * load(soft + i));
      d_w[chosen] += d_likely;
    } else {
      if (idle) d_w[n - 1] = 0;
      softmax_back(soft, d_w, size, d_w);
    }
    if (recent) d_head[features + 1] = -dot(d_w, v, size) * gamma * (1 - gamma);
    for (int64_t i = 0; i < size; i += kWidth<S>) {
      V d = load(d_w + i), after = load(d_v + i);
      store(d_w + i, d + S(0.9) * after), store(d_v + i, S(0.1) * after - gamma * d);
    }
    d_head[features] = dot(d_w, cos, size) * softplus_slope(beta - 1);
    for (int64_t i = 0; i < size; i += kWidth<S>) store(d_w + i, beta * load(d_w + i));
    cosine_back(head, m, inverse, floor, cos, d_w, d_head, d_m, along);
  }

  void forward(const Step<S>& s) const override {
    s.add(reads);
    if (before) s.add(aims);
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      const S *was = s.was + r * s.width, *drawn = s.noise ? s.noise + r * noise : nullptr;
      inverse_lengths(memory(was), floor, now + Q.offset);
      now[B.offset] = address(now + K.offset, memory(was), now + Q.offset, was + VR.offset, drawn,
                              now + FR.offset, now + VR.offset);
      clear_padding(now, B);
      read(memory(was), now + FR.offset + 2 * size, now + R.offset);
      clear_padding(now, R);
    }
    move(s);
    if (!before) s.add(aims);
    s.add(writes), s.set(makes);
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      const S *was = s.was + r * s.width, *drawn = s.noise ? s.noise + r * noise + n : nullptr;
      now[B.offset] += address(now + L.offset, memory(was), now + Q.offset, was + VW.offset, drawn,
                               now + FW.offset, now + VW.offset);
      S *e = now + E.offset, *alpha = e + contents, *y = now + Y.offset;
      *alpha = sigmoid_of_one(*alpha);
      for (int64_t j = 0; j < contents; j++) {
        S sum = y[j] + *alpha * now[X.offset + j];
        e[j] = sigmoid_of_one(e[j]), y[j] = sum < 0 ? 0 : sum;
      }
      erase_and_add({was + M.offset, contents, n, size}, written_by(now), now + M.offset);
    }
  }

  Writers<const S> written_by(const S* now) const {
    return {1, 0, now + FW.offset + 2 * size, now + E.offset, now + Y.offset};
  }

  void backward(const Step<S>& s) const override {
    for (int64_t r = 0; r < s.rows; r++) {
      const S *now = s.now + r * s.width, *was = s.was + r * s.width;
      S *grad = s.grad + r * s.grad_width, *carry = s.carry + r * s.carry_width;
      S *d_e = grad + E.offset, *d_y = grad + Y.offset;
      clear(grad + addresses.gradient.offset, extent<S>(addresses.gradient));
      clear(grad + D.offset, size);
      erase_and_add_back({was + M.offset, contents, n, size}, written_by(now), carry + M.offset,
                         {1, 0, grad + D.offset, d_e, d_y});
      const S *e = now + E.offset, *y = now + Y.offset, *x = now + X.offset, alpha = e[contents];
      S of_alpha = 0;
      for (int64_t j = 0; j < contents; j++) {
        d_e[j] *= e[j] * (1 - e[j]), d_y[j] = y[j] <= 0 ? 0 : d_y[j];
        grad[X.offset + j] = alpha * d_y[j], of_alpha += x[j] * d_y[j];
      }
      d_e[contents] = of_alpha * alpha * (1 - alpha);
      found_back(now + L.offset, now, was, now + FW.offset, VW, grad, carry, L);
      clear_padding(grad, E), clear_padding(grad, X), clear_padding(grad, Y);
    }
    s.each(units, [&](At<S> at) { at.grad.put(N, at.carry(H)); });
    s.add_back(writes), s.add_back(makes);
    if (!before) s.add_back(aims);
    move_back(s);
    for (int64_t r = 0; r < s.rows; r++) {
      const S *now = s.now + r * s.width, *was = s.was + r * s.width;
      S *grad = s.grad + r * s.grad_width, *carry = s.carry + r * s.carry_width;
      clear(grad + D.offset, size);
      read_back(memory(was), now + FR.offset + 2 * size, grad + R.offset, grad + D.offset,
                gradients(grad, carry));
      found_back(now + K.offset, now, was, now + FR.offset, VR, grad, carry, K);
      carry[B.offset] = 0;
    }
    s.add_back(reads);
    if (before) s.add_back(aims);
  }

  Memory<S> gradients(S* grad, S* carry) const {
    return {carry + M.offset, features, n, size, grad + addresses.gradient.offset, fixed};
  }

  // The way back of the head whose numbers are in block `to`, and its average in `average`.
  void found_back(const S* head, const S* now, const S* was, const S* found, Block average,
                  S* grad, S* carry, Block to) const {
    address_back(head, memory(was), now + Q.offset, was + average.offset, found, grad + D.offset,
                 carry + average.offset, carry[B.offset], grad + to.offset, gradients(grad, carry),
                 grad + P.offset);
    clear_padding(grad, to);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
