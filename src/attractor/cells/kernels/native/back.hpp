// The way back: gradients from outside, of each step, and of the weights.
#pragma once

#include "run.hpp"

namespace attractor::ATTRACTOR_PATH {

template <class S>
void Run<S>::prepare_gradients() {
  grad_ = space_.array<S>(chunk_rows_ * cell_.grad_width);
  carry_ = space_.zeros<S>(call_.batch * state_);
  held_ = space_.array<S>(call_.batch * state_);
  d_x_ = space_.array<S>(chunk_rows_ * x_width_);
  scratch_ = space_.array<S>(chunk_rows_ * kRows * call_.threads);
  for (int i = 0; i < cell_.state_count; i++)
    if (call_.d_last[i])
      spread(array(call_.d_last[i]), cell_.states[i], call_.batch,
             carry_ + cell_.states[i].offset - cell_.inner, state_);
  for (int i = 0; i < cell_.link_count; i++) {
    Link<S>& l = cell_.links[i];
    panels_[i] = space_.array<S>(chunk_rows_ * padded<S>(l.columns()));
    if (learns(l)) l.gradient = space_.array<S>(l.rows() * padded<S>(l.columns()));
  }
  for (int i = 0; i < cell_.vector_count; i++)
    vector_sums_[i] =
        space_.zeros<S>(extent<S>(Block{0, cell_.vectors[i]->size, cell_.vectors[i]->rows}));
}

template <class S>
bool Run<S>::learns(const Link<S>& l) const {
  return call_.d_weight[l.weight] || (l.bias >= 0 && call_.d_weight[l.bias]);
}

template <class S>
void Run<S>::backward_rows(int index, int count, Meeting& meeting) {
  Share s = share(index, count);
  pack(index, count), clear_gradients(index, count);
  meeting.wait();
  for (int64_t stop = call_.steps; stop > 0;) {
    int64_t start = (stop - 1) / chunk_ * chunk_;
    copy_input(s, start, stop);
    if (cell_.reads_x) clear_d_x(s, start, stop);
    for (int64_t t = stop; t-- > start;)
      if (running_in(s, t)) {
        Step<S> now = step(s, t);
        receive(s, t, now);
        if (shift_) part(t, now);
        cell_.backward(now);
        if (shift_) join(now);
      }
    give_input(s, start, stop);
    meeting.wait();
    for (int i = 0; i < cell_.link_count; i++) panel(i, start, stop, index, count);
    meeting.wait();
    for (int i = 0; i < cell_.link_count; i++) learn(i, stop, index, count);
    for (int i = 0; i < cell_.vector_count; i++) learn_vector(i, stop, index, count);
    meeting.wait();
    stop = start;
  }
  give_gradients(index, count);
  for (int i = 0; i < cell_.state_count; i++)
    if (call_.d_state[i] && s.last > s.first) {
      Block h = cell_.states[i];
      gather(carry_ + s.first * state_ + h.offset - cell_.inner, state_, s.last - s.first,
             array(call_.d_state[i]) + s.first * h.rows * h.size, h);
    }
}

// Zoneout: the part of the gradient that goes around the step, which is held meanwhile.
template <class S>
void Run<S>::part(int64_t t, const Step<S>& now) const {
  for (int i = 0; i < cell_.state_count; i++)
    now.each(extent<S>(cell_.states[i]), [&](At<S> at) {
      Block h = cell_.states[i];
      Vector<S> d = at.carry(h), around = kept(i, offsets_[t] + at.sequence, at.unit) * d;
      store(held_ + at.sequence * state_ + h.offset - cell_.inner + at.unit, around);
      at.carry.put(h, d - around);
    });
}

template <class S>
void Run<S>::join(const Step<S>& now) const {
  for (int i = 0; i < cell_.state_count; i++)
    now.each(extent<S>(cell_.states[i]), [&](At<S> at) {
      Block h = cell_.states[i];
      at.carry.add(h, load(held_ + at.sequence * state_ + h.offset - cell_.inner + at.unit));
    });
}

// Add the gradients that come from outside at this step.
template <class S>
void Run<S>::receive(Share s, int64_t t, const Step<S>& now) const {
  int64_t row = offsets_[t] + s.first;
  Block y = cell_.output;
  bool state = y.offset >= cell_.inner;
  if (!state)
    for (int64_t r = 0; r < now.rows; r++)
      memset(now.grad + r * cell_.grad_width + y.offset, 0, padded<S>(y.size) * sizeof(S));
  if (call_.d_output)
    sum(array(call_.d_output) + row * y.size, y, now.rows,
        (state ? now.carry : now.grad) + y.offset, state ? now.carry_width : now.grad_width);
  for (int i = 0; i < cell_.state_count; i++)
    if (call_.d_every[i]) {
      Block h = cell_.states[i];
      sum(array(call_.d_every[i]) + row * h.rows * h.size, h, now.rows, now.carry + h.offset,
          now.carry_width);
    }
}

template <class S>
void Run<S>::clear_d_x(Share s, int64_t start, int64_t stop) const {
  for (int64_t t = start; t < stop; t++)
    memset(d_x_ + (in_chunk(t) + s.first) * x_width_, 0,
           running_in(s, t) * x_width_ * sizeof(S));
}

template <class S>
void Run<S>::give_input(Share s, int64_t start, int64_t stop) {
  const Link<S>& l = cell_.links[0];
  if (!call_.d_x || l.from != From::input) return;
  for (int64_t t = start; t < stop; t++) {
    Step<S> now = step(s, t);
    if (!now.rows) break;
    S* to = array(call_.d_x) + (offsets_[t] + s.first) * cell_.inputs;
    if (!projected_) {
      int64_t column = 0;
      for (int b = 0; b < l.blocks; column += l.to[b++].size)
        for (int64_t r = 0; r < now.rows; r++)
          memcpy(to + r * cell_.inputs + column,
                 now.grad + r * cell_.grad_width + l.to[b].offset, l.to[b].size * sizeof(S));
      continue;
    }
    int64_t rows = now.rows, next = t;
    while (next + 1 < stop && s.first == 0 && running_in(s, next) == running(next))
      rows += running_in(s, ++next);
    const S* from = now.grad + l.to[0].offset;
    int64_t N = padded<S>(cell_.inputs);
    auto product = cell_.reads_x ? share_product<true, S> : share_product<false, S>;
    product(crew_, from, cell_.grad_width, rows, l.packed, l.rows(), N, now.d_x, x_width_);
    gather(now.d_x, x_width_, rows, to, Block{0, cell_.inputs});
    t = next;
  }
}

// Bring what a matrix has read to panels; threads share the panels.
template <class S>
void Run<S>::panel(int i, int64_t start, int64_t stop, int index, int count) const {
  const Link<S>& l = cell_.links[i];
  if (!l.gradient) return;
  constexpr int W = kWidth<S>;
  int64_t N = padded<S>(l.columns()), rows = in_chunk_end(stop);
  divide(ceil_div(N, 2 * W), index, count, [&](int64_t first, int64_t last, int) {
    for (int64_t n = first * 2 * W; n < least(last * 2 * W, N); n += 2 * W) {
      int64_t size = least(2 * W, N - n);
      S* to = panels_[i] + n * rows;
      for (int64_t t = start; t < stop; t++) {
        const S* from = source(l, t);
        int64_t width = l.from == From::input ? x_width_ : width_;
        for (int64_t r = 0; r < running(t); r++, to += size)
          for (int64_t j = 0; j < size; j += W) store(to + j, load(from + r * width + n + j));
      }
    }
  });
}

template <class S>
int64_t Run<S>::in_chunk_end(int64_t stop) const {
  return offsets_[stop] - offsets_[(stop - 1) / chunk_ * chunk_];
}

template <class S>
const S* Run<S>::source(const Link<S>& l, int64_t t) const {
  if (l.from == From::input) return x_ + in_chunk(t) * x_width_;
  return (l.from == From::was ? before(t) + shift_ : record(t)) + l.source.offset;
}

// Each thread sums some rows of each matrix's gradient, over all sequences.
template <class S>
void Run<S>::learn(int i, int64_t stop, int index, int count) const {
  const Link<S>& l = cell_.links[i];
  if (!l.gradient) return;
  int64_t rows = in_chunk_end(stop), N = padded<S>(l.columns());
  for (int b = 0; b < l.blocks; b++) {
    int64_t within = l.to[b].offset - l.to[0].offset, size = l.to[b].size;
    const S* made = grad_ + l.made().offset + within;
    S* gradient = l.gradient + within * N;
    divide(ceil_div(size, kRows), index, count, [&](int64_t first, int64_t last, int thread) {
      outer(made, cell_.grad_width, first * kRows, least(last * kRows, size), panels_[i], rows, N,
            gradient, scratch_ + thread * chunk_rows_ * kRows);
    });
  }
}

template <class S>
void Run<S>::learn_vector(int i, int64_t stop, int index, int count) const {
  const Weights<S>& v = *cell_.vectors[i];
  constexpr int W = kWidth<S>;
  int64_t parts = extent<S>(v.gradient) / W, rows = in_chunk_end(stop);
  if (!v.gradient.size) return;
  for (int64_t p = parts * index / count; p < parts * (index + 1) / count; p++) {
    Vector<S> total = load(vector_sums_[i] + p * W);
    for (int64_t r = 0; r < rows; r++)
      total += load(grad_ + r * cell_.grad_width + v.gradient.offset + p * W);
    store(vector_sums_[i] + p * W, total);
  }
}

template <class S>
void Run<S>::clear_gradients(int index, int count) const {
  for (int i = 0; i < cell_.link_count; i++) {
    const Link<S>& l = cell_.links[i];
    int64_t N = padded<S>(l.columns());
    if (l.gradient)
      divide(l.rows(), index, count, [&](int64_t first, int64_t last, int) {
        memset(l.gradient + first * N, 0, (last - first) * N * sizeof(S));
      });
  }
}

template <class S>
void Run<S>::give_gradients(int index, int count) const {
  for (int i = 0; i < cell_.link_count; i++) {
    const Link<S>& l = cell_.links[i];
    S* bias = l.bias < 0 ? nullptr : array(call_.d_weight[l.bias]);
    if (l.gradient)
      divide(l.rows(), index, count, [&](int64_t first, int64_t last, int) {
        unpack_gradient(l, first, last, array(call_.d_weight[l.weight]), bias);
      });
  }
  for (int i = 0; i < cell_.vector_count && index == 0; i++) {
    const Weights<S>& v = *cell_.vectors[i];
    if (call_.d_weight[v.weight])
      gather(vector_sums_[i], 0, 1, array(call_.d_weight[v.weight]), Block{0, v.size, v.rows});
  }
}

}  // namespace attractor::ATTRACTOR_PATH
