#pragma once

#include "addressing.hpp"

namespace attractor::ATTRACTOR_PATH {

// The memory is M = [A, C], where no step changes A; a step reads one place and writes one.
//   pi[i] = a . tanh(W x + U h + W_u u + W_m M[i] + b) - 100 read[i], where u are the counts of
//     reads, standardised, and W_m M is carried along: one row of it is new at each step
//   w = one-hot of the largest of pi + noise;  r = M w
//     its gradient is that of softmax((pi + noise) tau), tau = 1 + softplus(w_t h + b), or none
//   i, f, o = sigmoid of W x + U h + W_r r + b;  alpha, beta = sigmoid((the same + noise) / 0.3)
//   c = f c + i tanh(W x + alpha U h + beta W_r r + b);  h = o tanh c
//   C[j] = y = W_c h + b, in the next empty place j, or else where w is one
// output = tanh(W_h h + W_r r + b)
template <class S>
struct Tardis : Cell<S> {
  ATTRACTOR_CELL;
  using Cell<S>::call;
  static constexpr const char* name = "tardis";
  const int64_t n, size, fixed, contents, features, looks;  // looks: units of the attention
  const bool resets, passes;              // has alpha and beta; w has a gradient
  Block AX, G, I, F, O, AB, AH, TAU, AR;  // AX, AH, AR: of the candidate; G: of the attention
  Block U, N, R, Y, J, Z, OUT, PI;        // N is a copy of h; J is where y goes; Z is W_m M[J]
  Block H, C, M, USED, READ, SEEN, FULL, B, Q;  // B: log of how likely the read was; Q: W_m M
  Block DW, DP;                           // gradients: of w and of pi
  Link<S>*from_h, *from_r, *also_r, *from_u, *makes, *looks_at, *looks_where, *out_h, *out_r;
  Weights<S> a, addresses, seen, b_content, b_out, b_tau;  // seen: W_m A

  // sizes: units, places, features of A and of C, units of the attention
  explicit Tardis(const Call& c)
      : Cell<S>(c), n(c.size[2]), size(padded<S>(n)), fixed(c.size[3]), contents(c.size[4]),
        features(fixed + contents), looks(c.size[5]), resets(c.number[0] != 0),
        passes(c.number[1] != 0) {
    noise = n + (resets ? 2 : 0);
    AX = block(units), G = block(looks), I = block(units), F = block(units), O = block(units);
    AB = block(resets ? 2 : 0), AH = block(units), TAU = block(passes ? 1 : 0);
    AR = block(units), U = block(n), N = block(units), R = block(features);
    Y = block(contents), J = block(n), Z = block(looks), output = OUT = block(units), PI = block(n);
    reads_input(AX, G, I, F, O, AB);
    H = state(units), C = state(units), M = state(contents, n), USED = state(n), READ = state(n);
    SEEN = state(features), FULL = state(1), B = state(1), Q = state(looks, n);
    DW = gradient(n), DP = gradient(n);
    from_h = link(2, From::was, H, G, I, F, O, AB, AH, TAU);
    from_r = link(3, From::now, R, I, F, O, AB), also_r = link(4, From::now, R, AR);
    from_u = link(5, From::now, U, G), makes = link(6, From::now, N, Y);
    looks_at = link(7, From::now, Y, Z), looks_where = link(8, From::now, J, Z);
    out_h = link(9, From::now, N, OUT), out_r = link(10, From::now, R, OUT);
    vector(a, 11, looks), vector(addresses, 12, fixed, false, n);
    vector(seen, 13, looks, false, n), vector(b_content, 14, contents, false);
    vector(b_out, 15, units, false), vector(b_tau, 16, 1, false);
    b_content.gradient = Y, b_out.gradient = OUT, b_tau.gradient = TAU;
  }

  // ---- one sequence ----

  const S* content(const S* record, int64_t i) const {
    return record + M.offset + i * padded<S>(contents);
  }
  const S* address(int64_t i) const { return addresses.value + i * padded<S>(fixed); }

  // Counts less their mean, over their standard deviation, of which one over is returned.
  S standardise(const S* counts, S* made) const {
    S mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += counts[i];
    mean /= n;
    for (int64_t i = 0; i < n; i++) square += (counts[i] - mean) * (counts[i] - mean);
    S scale = 1 / root_of_one(square / n + S(1e-5));
    for (int64_t i = 0; made && i < n; i++) made[i] = (counts[i] - mean) * scale;
    return scale;
  }

  V looked(const S* now, const S* was, int64_t i, int64_t k) const {
    return tanh(load(now + G.offset + k) + load(was + Q.offset + i * padded<S>(looks) + k));
  }

  void attend(S* now, const S* was, const S* drawn) const {
    S* pi = now + PI.offset;
    for (int64_t i = 0; i < n; i++) {
      V sum{};
      for (int64_t k = 0; k < looks; k += kWidth<S>)
        sum += load(a.value + k) * looked(now, was, i, k);
      pi[i] = total<S>(sum) - 100 * was[READ.offset + i];
    }
    clear_padding(now, PI);
    int64_t chosen = largest_at(pi, drawn, n);
    clear(now + READ.offset, size), now[READ.offset + chosen] = 1;
    S* likely = now + B.offset;
    *likely = pi[chosen] - softmax(pi, n, size, now + USED.offset);  // its place is free as yet
    clear_padding(now, B);
    for (int64_t i = 0; i < size; i += kWidth<S>)
      store(now + USED.offset + i, load(was + USED.offset + i) + load(now + READ.offset + i));
    S* r = now + R.offset;
    memcpy(r, address(chosen), fixed * sizeof(S));
    memcpy(r + fixed, content(was, chosen), contents * sizeof(S));
    clear_padding(now, R);
    memcpy(now + SEEN.offset, r, padded<S>(features) * sizeof(S));
    if (passes) {
      S* tau = now + TAU.offset;
      *tau = 1 + softplus(*tau + (active(b_tau) ? *b_tau.value : 0));
    }
  }

  int64_t chosen_of(const S* now) const { return largest_at<S>(now + READ.offset, nullptr, n); }

  // The next empty place, where there is one, or the one that was read.
  void find_place(S* now, const S* was) const {
    S full = was[FULL.offset];
    clear(now + J.offset, size);
    for (int64_t i = 0; i < n; i++)
      now[J.offset + i] = full < n ? S(i) == full : now[READ.offset + i];
  }

  // Which place is written, -1 for none.
  int64_t place_of(const S* now) const {
    int64_t j = largest_at<S>(now + J.offset, nullptr, n);
    return now[J.offset + j] ? j : -1;
  }

  void write(S* now, const S* was) const {
    memcpy(now + M.offset, was + M.offset, extent<S>(M) * sizeof(S));
    memcpy(now + Q.offset, was + Q.offset, extent<S>(Q) * sizeof(S));
    int64_t j = place_of(now), full = padded<S>(contents), seen_by = padded<S>(looks);
    if (j >= 0) {
      memcpy(now + M.offset + j * full, now + Y.offset, full * sizeof(S));
      memcpy(now + Q.offset + j * seen_by, now + Z.offset, seen_by * sizeof(S));
    }
    S count = was[FULL.offset] + 1;
    now[FULL.offset] = count > n ? S(n) : count;
    clear_padding(now, FULL);
  }

  void write_back(const S* now, const S* was, S* grad, S* carry) const {
    int64_t j = place_of(now), full = padded<S>(contents), seen_by = padded<S>(looks);
    S *d_w = grad + DW.offset, *d_m = carry + M.offset, *d_q = carry + Q.offset;
    clear(d_w, size), clear(grad + Y.offset, full), clear(grad + Z.offset, seen_by);
    for (int64_t i = 0; passes && !(was[FULL.offset] < n) && i < n; i++) {
      V sum{};  // how far y is from C[i], and what the attention would see of it there
      for (int64_t k = 0; k < full; k += kWidth<S>)
        sum += (load(now + Y.offset + k) - load(content(was, i) + k)) * load(d_m + i * full + k);
      for (int64_t k = 0; k < seen_by; k += kWidth<S>) {
        int64_t at = i * seen_by + k;
        V y = load(now + Z.offset + k) - load(seen.value + j * seen_by + k);
        sum += (y + load(seen.value + at) - load(was + Q.offset + at)) * load(d_q + at);
      }
      d_w[i] = total<S>(sum);
    }
    if (j >= 0) {
      memcpy(grad + Y.offset, d_m + j * full, full * sizeof(S));
      memcpy(grad + Z.offset, d_q + j * seen_by, seen_by * sizeof(S));
      clear(d_m + j * full, full), clear(d_q + j * seen_by, seen_by);
    }
    if (was[FULL.offset] + 1 > n) carry[FULL.offset] = 0;
  }

  // From the gradients of what was read, of w and of how likely it was to that of pi.
  void choose_back(const S* now, const S* was, const S* drawn, S* grad, S* carry) const {
    const S *pi = now + PI.offset, *d_r = grad + R.offset;
    S *d_w = grad + DW.offset, *d_pi = grad + DP.offset, *soft = grad + U.offset;
    int64_t chosen = chosen_of(now);
    S* d_c = carry + M.offset + chosen * padded<S>(contents);
    for (int64_t j = 0; j < contents; j++) d_c[j] += d_r[fixed + j];
    S d_likely = carry[B.offset];
    carry[B.offset] = 0;
    softmax(pi, n, size, soft);
    for (int64_t i = 0; i < size; i += kWidth<S>) store(d_pi + i, -d_likely * load(soft + i));
    d_pi[chosen] += d_likely;
    if (passes) {
      S tau = now[TAU.offset], of_tau = 0;
      for (int64_t i = 0; i < n; i++) {
        d_w[i] += dot(d_r, address(i), fixed) + dot(d_r + fixed, content(was, i), contents);
        soft[i] = (pi[i] + drawn[i]) * tau;
      }
      softmax(soft, n, size, soft);
      softmax_back(soft, d_w, size, d_w);
      for (int64_t i = 0; i < n; i++)
        of_tau += d_w[i] * (pi[i] + drawn[i]), d_pi[i] += tau * d_w[i];
      grad[TAU.offset] = of_tau * softplus_slope(tau - 1);
      clear_padding(grad, TAU);
    }
    for (int64_t i = 0; i < n; i++) carry[READ.offset + i] = -100 * d_pi[i];
  }

  void attend_back(const S* now, const S* was, S* grad, S* carry) const {
    int64_t wide = padded<S>(looks);
    S *d_g = grad + G.offset, *d_a = grad + a.gradient.offset;
    clear(d_g, wide), clear(d_a, wide);
    for (int64_t i = 0; i < n; i++) {
      S d = grad[DP.offset + i], *d_q = carry + Q.offset + i * wide;
      for (int64_t k = 0; k < looks; k += kWidth<S>) {
        V e = looked(now, was, i, k), of = d * load(a.value + k) * (1 - e * e);
        store(d_a + k, load(d_a + k) + d * e), store(d_g + k, load(d_g + k) + of);
        store(d_q + k, load(d_q + k) + of);
      }
    }
  }

  void count_back(const S* now, const S* was, const S* grad, S* carry) const {
    const S *u = now + U.offset, *d = grad + U.offset;
    S scale = standardise(was + USED.offset, nullptr), mean = 0, along = 0;
    for (int64_t i = 0; i < n; i++) mean += d[i] / n, along += d[i] * u[i] / n;
    for (int64_t i = 0; i < n; i++) carry[USED.offset + i] += scale * (d[i] - mean - along * u[i]);
  }

  // ---- all sequences ----

  void forward(const Step<S>& s) const override {
    for (int64_t r = 0; r < s.rows; r++) {
      S* now = s.now + r * s.width;
      standardise(s.was + r * s.width + USED.offset, now + U.offset), clear_padding(now, U);
      clear(now + AH.offset, AR.offset - AH.offset);  // which no input is added to
    }
    s.add(from_h), s.add(from_u);
    for (int64_t r = 0; r < s.rows; r++)
      attend(s.now + r * s.width, s.was + r * s.width, s.noise ? s.noise + r * noise : nullptr);
    s.add(from_r), s.set(also_r);
    for (int64_t r = 0; r < s.rows; r++) {
      S* gates = s.now + r * s.width + AB.offset;
      for (int64_t j = 0; j < AB.size; j++)
        gates[j] = sigmoid_of_one((gates[j] + (s.noise ? s.noise[r * noise + n + j] : 0)) / S(0.3));
      S alpha = resets ? gates[0] : 1, beta = resets ? gates[1] : 1;
      s.row(r, units, [&](At<S> at) {
        V i = sigmoid(at.now(I)), f = sigmoid(at.now(F)), o = sigmoid(at.now(O));
        V candidate = tanh(alpha * at.now(AH) + at.now(AX) + beta * at.now(AR));
        V c = f * at.was(C) + i * candidate, h = o * tanh(c);
        at.now.put(I, i), at.now.put(F, f), at.now.put(O, o), at.now.put(AX, candidate);
        at.now.put(C, c), at.now.put(N, h), at.now.put(H, h);
      });
    }
    s.set(makes);
    if (active(b_content))
      s.each(contents, [&](At<S> at) { at.now.add(Y, at(b_content)); });
    for (int64_t r = 0; r < s.rows; r++) find_place(s.now + r * s.width, s.was + r * s.width);
    s.set(looks_at), s.add(looks_where), s.set(out_h), s.add(out_r);
    s.each(units, [&](At<S> at) {
      at.now.put(OUT, tanh(at.now(OUT) + (active(b_out) ? at(b_out) : V{})));
    });
    for (int64_t r = 0; r < s.rows; r++) write(s.now + r * s.width, s.was + r * s.width);
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) {
      V y = at.now(OUT);
      at.grad.put(OUT, at.grad(OUT) * (1 - y * y)), at.grad.put(N, at.carry(H));
    });
    s.each(features, [&](At<S> at) { at.grad.put(R, at.carry(SEEN)), at.carry.put(SEEN, V{}); });
    s.add_back(out_r), s.add_back(out_h);
    for (int64_t r = 0; r < s.rows; r++)
      write_back(s.now + r * s.width, s.was + r * s.width, s.grad + r * s.grad_width,
                 s.carry + r * s.carry_width);
    s.add_back(looks_at), s.add_back(makes);
    for (int64_t r = 0; r < s.rows; r++) {
      const S* gates = s.now + r * s.width + AB.offset;
      S alpha = resets ? gates[0] : 1, beta = resets ? gates[1] : 1;
      V of_alpha{}, of_beta{};
      s.row(r, units, [&](At<S> at) {
        V i = at.now(I), f = at.now(F), o = at.now(O), a = at.now(AX), shown = tanh(at.now(C));
        V d = at.grad(N), d_c = at.carry(C) + d * o * (1 - shown * shown);
        V d_a = d_c * i * (1 - a * a);
        at.grad.put(I, d_c * a * i * (1 - i)), at.grad.put(F, d_c * at.was(C) * f * (1 - f));
        at.grad.put(O, d * shown * o * (1 - o)), at.carry.put(C, d_c * f);
        at.grad.put(AX, d_a), at.grad.put(AH, alpha * d_a), at.grad.put(AR, beta * d_a);
        of_alpha += d_a * at.now(AH), of_beta += d_a * at.now(AR);
      });
      S* d = s.grad + r * s.grad_width;
      if (!resets) continue;
      d[AB.offset] = total<S>(of_alpha) * alpha * (1 - alpha) / S(0.3);
      d[AB.offset + 1] = total<S>(of_beta) * beta * (1 - beta) / S(0.3);
      clear_padding(d, AB);
    }
    s.add_back(from_r), s.add_back(also_r);
    for (int64_t r = 0; r < s.rows; r++) {
      const S *now = s.now + r * s.width, *was = s.was + r * s.width;
      S *grad = s.grad + r * s.grad_width, *carry = s.carry + r * s.carry_width;
      choose_back(now, was, s.noise ? s.noise + r * noise : nullptr, grad, carry);
      attend_back(now, was, grad, carry);
    }
    s.set_back(from_h);
    if (!call.d_state[3]) return;  // counts have a gradient only if somebody asks for it
    s.set_back(from_u);
    for (int64_t r = 0; r < s.rows; r++)
      count_back(s.now + r * s.width, s.was + r * s.width, s.grad + r * s.grad_width,
                 s.carry + r * s.carry_width);
  }
};

}  // namespace attractor::ATTRACTOR_PATH
