// The way back of a stack: gradients of the old states panel by panel, and of the weights, which
// are sums over all coordinates, by blocks of panels.
#pragma once

#include "stack.hpp"

namespace attractor::ATTRACTOR_PATH {

constexpr int64_t kBlock = 16;  // panels whose part of the weights' gradients is summed at a time
constexpr int64_t kRanges = 8;  // sums that are kept apart, however many threads there are

// d[m][n] += left row m times right row n, over the coordinates of a block; each d is a vector,
// whose lanes are summed at the very end. Rows are `kBlock` panels apart.
template <int M, int N, class S>
inline void dots(const S* left, const S* right, int64_t size, int64_t columns, S* d) {
  constexpr int W = kWidth<S>, row = kBlock * 2 * W;
  Vector<S> sum[M][N];
#pragma GCC unroll 4
  for (int m = 0; m < M; m++)
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) sum[m][n] = load(d + (m * columns + n) * W);
  for (int64_t i = 0; i < size; i += W) {
    Vector<S> l[M];
#pragma GCC unroll 4
    for (int m = 0; m < M; m++) l[m] = load(left + m * row + i);
#pragma GCC unroll 4
    for (int n = 0; n < N; n++) {
      Vector<S> r = load(right + n * row + i);
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
inline void dots_columns(int count, const S* left, const S* right, int64_t size, int64_t columns,
                         S* d) {
  if (count == N) return dots<M, N>(left, right, size, columns, d);
  if constexpr (N > 1) dots_columns<M, N - 1>(count, left, right, size, columns, d);
}

// All pairs of `rows` of the left with `columns` of the right.
template <class S>
[[gnu::noinline]] void all_dots(const S* left, int64_t rows, const S* right, int64_t columns,
                                int64_t size, S* d) {
  constexpr int W = kWidth<S>, row = kBlock * 2 * W;
  for (int64_t n = 0; n < columns; n += 4) {
    int some = int(least(4, columns - n));
    int64_t m = 0;
    for (; m + 3 <= rows; m += 3)
      dots_columns<3>(some, left + m * row, right + n * row, size, columns,
                      d + (m * columns + n) * W);
    for (; m < rows; m++)
      dots_columns<1>(some, left + m * row, right + n * row, size, columns,
                      d + (m * columns + n) * W);
  }
}

template <class S>
int64_t Stack<S>::block_count() const {
  return ceil_div(ceil_div(call_.rows, P), kBlock) * call_.batch;
}

template <class S>
void Stack<S>::backward() {
  pack();
  factors_ = last().units + 2, sums_ = last().units + 1;
  for (int i = 0; i < count_; i++) {
    factors_ += 4 * layer_[i].units + layer_[i].columns;
    sums_ += 4 * layer_[i].units * layer_[i].columns;
  }
  ranges_ = least(kRanges, ceil_div(block_count(), 8));
  gradients_ = space_.zeros<S>(ranges_ * sums_ * W);
  // behind the record of a panel: gradients of the output, of what the second layer reads of the
  // first, and of the states
  wide_ = height_ + 1 + layer_[0].units;
  for (int i = 0; i < count_; i++) d_states_[i] = wide_, wide_ += 2 * layer_[i].units;
  records_ = space_.array<S>(threads(ranges_) * (kGroup * wide_ + kBlock * factors_) * P);
  together(threads(ranges_), [](void* self, int index, int count, Meeting&) {
    static_cast<Stack*>(self)->backward_share(index, count);
  }, this);
  export_gradients();
}

// The ranges of blocks of one thread. What a range sums, and in which order, is always the same.
template <class S>
void Stack<S>::backward_share(int index, int count) {
  int64_t blocks = block_count(), each = ceil_div(ceil_div(call_.rows, P), kBlock);
  S* records = records_ + index * (kGroup * wide_ + kBlock * factors_) * P;
  S* factors = records + kGroup * wide_ * P;
  for (int64_t range = ranges_ * index / count; range < ranges_ * (index + 1) / count; range++)
    for (int64_t b = blocks * range / ranges_; b < blocks * (range + 1) / ranges_; b++) {
      int64_t first = b % each * kBlock * P, stop = least(first + kBlock * P, call_.rows), some = 0;
      for (; first < stop; first += kGroup * P) {
        Group g{b / each, first, least(kGroup * P, stop - first), wide_ * P};
        recall(g, records);
        for (int64_t i = 0; i < g.panels(); i++) {
          descend(records + i * g.next);
          keep(records + i * g.next, factors + some++ * P);
        }
        give_back(g, records);
      }
      learn(factors, some * P, gradients_ + range * sums_ * W);
    }
}

// Of a panel, what the gradients of the weights are products of: for each layer what its sums gave
// and what it read, then the same of the output.
template <class S>
void Stack<S>::keep(const S* record, S* to) const {
  auto copy = [&](int64_t first, int64_t rows) {
    for (int64_t r = 0; r < rows; r++, to += kBlock * P) {
      store(to, load(record + (first + r) * P)), store(to + W, load(record + (first + r) * P + W));
    }
  };
  for (int i = 0; i < count_; i++)
    copy(layer_[i].gates, 4 * layer_[i].units), copy(layer_[i].in, layer_[i].columns);
  copy(height_, 1), copy(top_, last().units + 1);
}

template <class S>
void Stack<S>::learn(const S* factors, int64_t size, S* sums) const {
  auto pair = [&](int64_t rows, int64_t columns) {
    all_dots(factors, rows, factors + rows * kBlock * P, columns, size, sums);
    factors += (rows + columns) * kBlock * P, sums += rows * columns * W;
  };
  for (int i = 0; i < count_; i++) pair(4 * layer_[i].units, layer_[i].columns);
  pair(1, last().units + 1);
}

// The records of a group as they were after the step, but for h, which the way back makes anyway,
// and the gradients of the output and the new states.
template <class S>
void Stack<S>::recall(const Group& g, S* record) const {
  read(g, record);
  int64_t stride = call_.size[4], at = 0;
  for (int i = 0; i < count_; i++) {
    const Layer& l = layer_[i];
    take(g, state(call_.last[2 * i + 1]), l.units, stride, record + l.c * P);
    take(g, state(call_.tape) + (g.learner * (tape_ - 4 * l.units) + at) * call_.rows,
         4 * l.units, call_.rows, record + l.gates * P);
    at += 4 * l.units;
    for (int s = 0; s < 2; s++)
      take(g, state(call_.d_last[2 * i + s]), l.units, call_.rows,
           record + (d_states_[i] + s * l.units) * P);
  }
  take(g, state(call_.d_output), 1, call_.rows, record + height_ * P);
}

// From the gradients of the new states to those of the sums of the gates, which take the gates'
// places in the record, and of the old states, which take those of the new ones.
template <class S>
void Stack<S>::descend(S* record) const {
  S *d_output = record + height_ * P, *d_in = d_output + P;
  for (int i = count_ - 1; i >= 0; i--) {
    const Layer& l = layer_[i];
    int64_t n = l.units * P;
    S *d_h = record + d_states_[i] * P, *d_c = d_h + n;
    S *gates = record + l.gates * P, *old = record + l.old * P, *c = record + l.c * P,
      *h = shown(record, i);
    bool top = i + 1 == count_;
    for (int64_t j = 0; j < n; j += W) {
      V input = load(gates + j), forget = load(gates + n + j), a = load(gates + 2 * n + j),
        o = load(gates + 3 * n + j), seen = quick_tanh(load(c + j));
      V d = load(d_h + j) + (top ? head_[j / P] * load(d_output + j % P) : load(d_in + j));
      V deeper = load(d_c + j) + d * o * (1 - seen * seen);
      store(h + j, o * seen);
      store(gates + j, deeper * a * input * (1 - input));
      store(gates + n + j, deeper * load(old + j) * forget * (1 - forget));
      store(gates + 2 * n + j, deeper * input * (1 - a * a));
      store(gates + 3 * n + j, d * seen * o * (1 - o));
      store(d_c + j, deeper * forget);
    }
    int64_t rows = 4 * l.units;
    if (call_.d_state[2 * i])
      multiply<false>(l.back + l.inputs * rows, rows, l.units, gates, rows, P, d_h, P);
    // of the first layer's inputs, the features, nobody asks for a gradient
    if (i) multiply<false>(l.back, rows, l.inputs, gates, rows, P, d_in, P);
  }
}

template <class S>
void Stack<S>::give_back(const Group& g, const S* record) const {
  for (int i = 0; i < count_; i++)
    for (int s = 0; s < 2; s++)
      if (call_.d_state[2 * i + s])
        give(g, record + (d_states_[i] + s * layer_[i].units) * P, layer_[i].units,
             state(call_.d_state[2 * i + s]), call_.rows);
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
