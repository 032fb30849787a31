// The way back of a stack: gradients of the old states panel by panel, and of the weights, which
// are sums over all coordinates, by blocks of panels.
#pragma once

#include "stack.hpp"

namespace attractor::ATTRACTOR_PATH {

constexpr int64_t kRanges = 8;  // sums that are kept apart, however many threads there are

// d[m][n] += left row m times right row n, over the coordinates of some panels, which are `next`
// apart; each d is a vector, whose lanes are summed at the very end.
template <int M, int N, class S>
inline void dots(const S* left, const S* right, int64_t panels, int64_t next, int64_t columns,
                 S* d) {
  constexpr int W = kWidth<S>, P = 2 * W;
  Vector<S> sum[M][N];
#pragma GCC unroll 4
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) sum[m][n] = load(d + (m * columns + n) * W);
  for (int64_t i = 0; i < panels; i++, left += next, right += next)
#pragma GCC unroll 2
    for (int v = 0; v < P; v += W) {
      Vector<S> l[M];
#pragma GCC unroll 4
      for (int m = 0; m < M; m++) l[m] = load(left + m * P + v);
#pragma GCC unroll 4
      for (int n = 0; n < N; n++) {
        Vector<S> r = load(right + n * P + v);
#pragma GCC unroll 4
        for (int m = 0; m < M; m++) sum[m][n] += l[m] * r;
      }
    }
#pragma GCC unroll 4
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) store(d + (m * columns + n) * W, sum[m][n]);
}

template <int M, int N = 4, class S>
inline void dots_columns(int count, const S* left, const S* right, int64_t panels, int64_t next,
                         int64_t columns, S* d) {
  if (count == N) return dots<M, N>(left, right, panels, next, columns, d);
  if constexpr (N > 1) dots_columns<M, N - 1>(count, left, right, panels, next, columns, d);
}

// All pairs of `rows` of the left with `columns` of the right.
template <class S>
[[gnu::noinline]] void all_dots(const S* left, int64_t rows, const S* right, int64_t columns,
                                int64_t panels, int64_t next, S* d) {
  constexpr int W = kWidth<S>, P = 2 * W;
  for (int64_t n = 0; n < columns; n += 4) {
    int some = int(least(4, columns - n));
    int64_t m = 0;
    for (; m + 3 <= rows; m += 3)
      dots_columns<3>(some, left + m * P, right + n * P, panels, next, columns,
                      d + (m * columns + n) * W);
    for (; m < rows; m++)
      dots_columns<1>(some, left + m * P, right + n * P, panels, next, columns,
                      d + (m * columns + n) * W);
  }
}

template <class S>
void Stack<S>::backward() {
  pack();
  sums_ = last().units + 1;
  for (int i = 0; i < count_; i++) sums_ += 4 * layer_[i].units * layer_[i].columns;
  ranges_ = least(kRanges, ceil_div(block_count(), 8));
  gradients_ = space_.zeros<S>(ranges_ * sums_ * W);
  // behind a record: gradients of its gates; beside it, behind c: those of what the second layer
  // reads of the first, and of the states
  d_in_ = beside_, beside_ += layer_[0].units;
  for (int i = 0; i < count_; i++) d_states_[i] = beside_, beside_ += 2 * layer_[i].units;
  own_ = (kBlock * (height_ + tape_) + kGroup * beside_) * P;
  records_ = space_.array<S>(threads(ranges_) * own_);
  together(threads(ranges_), [](void* self, int index, int count, Meeting&) {
    static_cast<Stack*>(self)->backward_share(index, count);
  }, this);
  export_gradients();
}

// The ranges of blocks of one thread. What a range sums, and in which order, is always the same.
template <class S>
void Stack<S>::backward_share(int index, int count) {
  int64_t blocks = block_count(), each = ceil_div(panels_, kBlock), next = (height_ + tape_) * P;
  S *records = records_ + index * own_, *beside = records + kBlock * next;
  for (int64_t range = ranges_ * index / count; range < ranges_ * (index + 1) / count; range++)
    for (int64_t b = blocks * range / ranges_; b < blocks * (range + 1) / ranges_; b++) {
      int64_t first = b % each * kBlock * P, stop = least(first + kBlock * P, call_.rows);
      S* record = records;
      for (; first < stop; first += kGroup * P) {
        int64_t size = least(kGroup * P, stop - first);
        Group g{b / each, first, size, record, beside, next, beside_ * P};
        recall(g);
        for (int64_t i = 0; i < g.panels(); i++, record += next)
          descend(record, beside + i * g.next_beside, taped(g, i));
        give_back(g);
      }
      learn(records, (record - records) / next, gradients_ + range * sums_ * W);
    }
}

// The gradients of the weights: what the sums of each layer gave times what it read, and the same
// of the output.
template <class S>
void Stack<S>::learn(const S* records, int64_t panels, S* sums) const {
  auto pair = [&](int64_t left, int64_t rows, int64_t right, int64_t columns) {
    all_dots(records + left * P, rows, records + right * P, columns, panels, (height_ + tape_) * P,
             sums);
    sums += rows * columns * W;
  };
  for (int i = 0; i < count_; i++) {
    const Layer& l = layer_[i];
    pair(height_ + l.gates, 4 * l.units, l.in, l.columns);
  }
  pair(height_ - 1, 1, top_, last().units + 1);
}

// The records of a group as they were before the step, and the gradients of the output, which takes
// the output's place, and of the new states.
template <class S>
void Stack<S>::recall(const Group& g) const {
  read(g);
  for (int i = 0; i < count_; i++)
    for (int s = 0; s < 2; s++)
      take(g, state(call_.d_last[2 * i + s]), layer_[i].units, call_.rows,
           g.beside + (d_states_[i] + s * layer_[i].units) * P, g.next_beside);
  take(g, state(call_.d_output), 1, call_.rows, output(g.record), g.next);
}

// From the gradients of the new states to those of the sums of the gates, and of the old states,
// which take the places of those of the new ones.
template <class S>
void Stack<S>::descend(S* record, S* beside, const S* taped) const {
  S *d_output = output(record), *d_in = beside + d_in_ * P;
  for (int i = count_ - 1; i >= 0; i--) {
    const Layer& l = layer_[i];
    int64_t n = l.units * P;
    const S *gates = taped + l.gates * P, *c = beside + l.c * P;
    S *d_gates = record + (height_ + l.gates) * P, *h = shown(record, i);
    S *d_h = beside + d_states_[i] * P, *d_c = d_h + n;
    bool top = i + 1 == count_;
    for (int64_t j = 0; j < n; j += W) {
      V input = load(gates + j), forget = load(gates + n + j), a = load(gates + 2 * n + j),
        o = load(gates + 3 * n + j), old = load(c + j);
      V seen = quick_tanh(forget * old + input * a);
      V d = load(d_h + j) + (top ? head_[j / P] * load(d_output + j % P) : load(d_in + j));
      V deeper = load(d_c + j) + d * o * (1 - seen * seen);
      store(h + j, o * seen);
      store(d_gates + j, deeper * a * input * (1 - input));
      store(d_gates + n + j, deeper * old * forget * (1 - forget));
      store(d_gates + 2 * n + j, deeper * input * (1 - a * a));
      store(d_gates + 3 * n + j, d * seen * o * (1 - o));
      store(d_c + j, deeper * forget);
    }
    int64_t rows = 4 * l.units;
    if (call_.d_state[2 * i])
      multiply<false>(l.back + l.inputs * rows, rows, l.units, d_gates, rows, P, d_h, P);
    // of the first layer's inputs, the features, nobody asks for a gradient
    if (i) multiply<false>(l.back, rows, l.inputs, d_gates, rows, P, d_in, P);
  }
}

template <class S>
void Stack<S>::give_back(const Group& g) const {
  for (int i = 0; i < count_; i++)
    for (int s = 0; s < 2; s++)
      if (call_.d_state[2 * i + s])
        give(g, g.beside + (d_states_[i] + s * layer_[i].units) * P, g.next_beside,
             layer_[i].units, state(call_.d_state[2 * i + s]), call_.rows);
}

// The sums of all ranges and lanes, to where the gradients of W, U, b and the head go.
template <class S>
void Stack<S>::export_gradients() const {
  auto total = [&](int64_t at) {
    S sum = 0;
    for (int64_t r = 0; r < ranges_; r++)
      for (int i = 0; i < W; i++) sum += gradients_[(r * sums_ + at) * W + i];
    return sum;
  };
  auto put = [&](int weight, int64_t index, int64_t at) {
    if (call_.d_weight[weight]) state(call_.d_weight[weight])[index] = total(at);
  };
  int64_t at = 0;
  for (int i = 0; i < count_; i++) {
    const Layer& l = layer_[i];
    for (int64_t r = 0; r < 4 * l.units; r++) {
      for (int64_t k = 0; k < l.inputs; k++) put(3 * i, r * l.inputs + k, at++);
      for (int64_t k = 0; k < l.units; k++) put(3 * i + 1, r * l.units + k, at++);
      put(3 * i + 2, r, at++);
    }
  }
  for (int64_t k = 0; k < last().units; k++) put(6, k, at++);
  put(7, 0, at);
}

}  // namespace attractor::ATTRACTOR_PATH
