// One or two layers of LSTM that serve every coordinate of a network, and a sum of their last
// units: one step of a recurrent rule, there and back, in one pass over the states.
//
// Here the coordinates are the lanes of vectors. A state is stored unit by unit, (units,
// coordinates); two vectors of coordinates are a panel. What the products of a panel read is a
// record of rows, its gates are others, and all of it stays in the first cache. A matrix then
// multiplies a panel row by row of its own, and no size has to be padded. The tape has the gates
// panel by panel, as they are computed.
#pragma once

#include "../call.hpp"
#include "../matmul.hpp"
#include "../memory.hpp"
#include "../threads.hpp"
#include "functions.hpp"

namespace attractor::ATTRACTOR_PATH {

// The call of a stack: `batch` learners of `rows` coordinates each. size: 2 features, units of each
// layer (the second 0 if there is one layer), numbers from one unit of the given state to the next,
// and the same of the new state. number: p. weight: of each layer W, U and b, then those of the
// sum; without them the last layer has one unit, which is the output. Gates come as i, f, a, o.
constexpr int64_t kGroup = 4;   // panels that are read and written together
constexpr int64_t kBlock = 16;  // those whose part of the weights' gradients is summed at a time

template <class S>
class Stack {
 public:
  static constexpr int W = kWidth<S>, P = 2 * W;
  using V = Vector<S>;

  struct Layer {
    int64_t inputs, units, columns;  // columns: inputs, units, and a one for the bias
    int64_t in;                      // rows of a record, from this one on
    int64_t gates, c;                // rows of the gates and of what goes beside them
    S *weight, *back;                // (4 units, columns), and [W | U] turned
  };

  explicit Stack(const Call& call) : call_(call), preprocess_(call.number[0]) {
    int64_t inputs = call.size[0];
    for (count_ = 0; count_ < 2 && call.size[1 + count_]; count_++) {
      Layer& l = layer_[count_];
      l.inputs = inputs, l.units = inputs = call.size[1 + count_];
      l.columns = l.inputs + l.units + 1;
      l.in = height_, height_ += l.columns;
      l.gates = tape_, tape_ += 4 * l.units;
      l.c = beside_, beside_ += l.units;
    }
    top_ = height_, height_ += inputs + 2;  // the last units, a one, and the output
    panels_ = ceil_div(call.rows, P);
  }

  // Numbers of all gates of all panels.
  int64_t tape_size() const { return call_.batch * panels_ * tape_ * P; }

  void forward() {
    pack();
    int64_t groups = ceil_div(panels_, kGroup) * call_.batch;
    own_ = (kGroup * (height_ + beside_) + tape_) * P;
    records_ = space_.array<S>(threads(groups) * own_);
    together(threads(groups), [](void* self, int index, int count, Meeting&) {
      static_cast<Stack*>(self)->forward_share(index, count);
    }, this);
  }

  void backward();  // stack_back.hpp

 private:
  const Layer& last() const { return layer_[count_ - 1]; }

  // How many are worth it for that many pieces of work.
  int threads(int64_t pieces) const {
    bool worth = call_.rows * call_.batch * tape_ > 200000;
    return worth && pieces > 1 ? int(least(call_.threads, pieces)) : 1;
  }

  // [W | U | b] of each layer as one matrix, and turned for the way back.
  void pack() {
    for (int i = 0; i < count_; i++) {
      Layer& l = layer_[i];
      int64_t rows = 4 * l.units, inner = l.inputs + l.units;
      l.weight = space_.array<S>(rows * l.columns), l.back = space_.array<S>(rows * inner);
      for (int64_t r = 0; r < rows; r++) {
        S* to = l.weight + r * l.columns;
        memcpy(to, given(3 * i) + r * l.inputs, l.inputs * sizeof(S));
        memcpy(to + l.inputs, given(3 * i + 1) + r * l.units, l.units * sizeof(S));
        to[inner] = given(3 * i + 2)[r];
        for (int64_t k = 0; k < inner; k++) l.back[k * rows + r] = to[k];
        // sigmoid x = (1 + tanh(x / 2)) / 2: all gates but a are asked for half of their sums
        if (r / l.units != 2)
          for (int64_t k = 0; k <= inner; k++) to[k] *= S(0.5);
      }
    }
    int64_t units = last().units;
    head_ = space_.array<S>(units + 1);
    head_[0] = 1, head_[units] = 0;
    if (given(6)) memcpy(head_, given(6), units * sizeof(S));
    if (given(7)) head_[units] = *given(7);
  }

  const S* given(int weight) const { return static_cast<const S*>(call_.weight[weight]); }

  // A few panels that are neighbours: rows of memory are read and written for all of them at once.
  struct Group {
    int64_t learner, first, size;  // coordinates
    S *record, *beside;            // of the first panel
    int64_t next, next_beside;     // from those of one panel to those of the next
    int64_t panels() const { return ceil_div(size, P); }
  };

  // Rows of memory, (learners, rows, stride), to those of panels that are `next` apart; null counts
  // as zeros.
  static void take(const Group& g, const S* from, int64_t rows, int64_t stride, S* to,
                   int64_t next) {
    if (from) from += g.learner * rows * stride + g.first;
    for (int64_t r = 0; r < rows; r++, from += from ? stride : 0, to += P)
      for (int64_t i = 0, left = g.size; left > 0; i++, left -= P) {
        S* made = to + i * next;
        if (!from || left < P) memset(made, 0, P * sizeof(S));
        if (!from) continue;
        if (left < P)
          memcpy(made, from + i * P, left * sizeof(S));
        else
          store(made, load(from + i * P)), store(made + W, load(from + i * P + W));
        __builtin_prefetch(from + i * P + kGroup * P);
      }
  }

  static void give(const Group& g, const S* from, int64_t next, int64_t rows, S* to,
                   int64_t stride) {
    to += g.learner * rows * stride + g.first;
    for (int64_t r = 0; r < rows; r++, from += P, to += stride)
      for (int64_t i = 0, left = g.size; left > 0; i++, left -= P) {
        const S* made = from + i * next;
        if (left < P)
          memcpy(to + i * P, made, left * sizeof(S));
        else
          store(to + i * P, load(made)), store(to + i * P + W, load(made + W));
        __builtin_prefetch(to + i * P + kGroup * P, 1);
      }
  }

  static const S* state(const void* p) { return static_cast<const S*>(p); }
  static S* state(void* p) { return static_cast<S*>(p); }

  // What is known before anything is computed: features, old states, ones.
  void read(const Group& g) const {
    take(g, state(call_.x), 1, call_.rows, g.record + layer_[0].in * P, g.next);
    for (int i = 0; i < count_; i++) {
      const Layer& l = layer_[i];
      take(g, state(call_.state[2 * i]), l.units, call_.size[3],
           g.record + (l.in + l.inputs) * P, g.next);
      take(g, state(call_.state[2 * i + 1]), l.units, call_.size[3], g.beside + l.c * P,
           g.next_beside);
    }
    for (int64_t i = 0; i < g.panels(); i++) {
      S *record = g.record + i * g.next, *x = record + layer_[0].in * P;
      for (int v = 0; v < P; v += W) {
        V seen = load(x + v);
        store(x + v, preprocess_.size(seen)), store(x + P + v, preprocess_.direction(seen));
        for (int l = 0; l < count_; l++)
          store(record + (layer_[l].in + layer_[l].columns - 1) * P + v, all<S>(1));
        store(record + (height_ - 2) * P + v, all<S>(1));
      }
    }
  }

  // Where the new h of a layer goes: to the next one, or to the top.
  S* shown(S* record, int i) const {
    return record + (i + 1 < count_ ? layer_[i + 1].in : top_) * P;
  }

  // The gates of a panel on the tape, if there is one.
  S* taped(const Group& g, int64_t panel) const {
    return state(call_.tape) + (g.learner * panels_ + g.first / P + panel) * tape_ * P;
  }

  static V gate(const S* half) { return S(0.5) + S(0.5) * quick_tanh(load(half)); }

  template <bool Kept>
  void step(int i, S* record, S* beside, S* gates) const {
    const Layer& l = layer_[i];
    int64_t n = l.units * P;
    S *c = beside + l.c * P, *h = shown(record, i);
    gates += l.gates * P;
    multiply<false>(l.weight, l.columns, 4 * l.units, record + l.in * P, l.columns, P, gates, P);
    for (int64_t j = 0; j < n; j += W) {
      V input = gate(gates + j), forget = gate(gates + n + j),
        a = quick_tanh(load(gates + 2 * n + j)), o = gate(gates + 3 * n + j);
      V next = forget * load(c + j) + input * a;
      if (Kept) {
        store(gates + j, input), store(gates + n + j, forget);
        store(gates + 2 * n + j, a), store(gates + 3 * n + j, o);
      }
      store(c + j, next), store(h + j, o * quick_tanh(next));
    }
  }

  template <bool Kept>
  void panel(S* record, S* beside, S* gates) const {
    for (int l = 0; l < count_; l++) step<Kept>(l, record, beside, gates);
    int64_t units = last().units + 1;
    multiply<false>(head_, units, 1, record + top_ * P, units, P, output(record), P);
  }

  // The last row of a record.
  S* output(S* record) const { return record + (height_ - 1) * P; }

  void forward_share(int index, int count) const {
    int64_t each = ceil_div(panels_, kGroup), groups = each * call_.batch;
    S *records = records_ + index * own_, *beside = records + kGroup * height_ * P,
      *gates = beside + kGroup * beside_ * P;
    for (int64_t n = groups * index / count; n < groups * (index + 1) / count; n++) {
      int64_t first = n % each * kGroup * P, size = least(kGroup * P, call_.rows - first);
      Group g{n / each, first, size, records, beside, height_ * P, beside_ * P};
      read(g);
      for (int64_t i = 0; i < g.panels(); i++) {
        S *record = records + i * g.next, *other = beside + i * g.next_beside;
        if (call_.tape)
          panel<true>(record, other, taped(g, i));
        else
          panel<false>(record, other, gates);
      }
      write(g);
    }
  }

  void write(const Group& g) const {
    for (int i = 0; i < count_; i++) {
      const Layer& l = layer_[i];
      give(g, shown(g.record, i), g.next, l.units, state(call_.last[2 * i]), call_.size[4]);
      give(g, g.beside + l.c * P, g.next_beside, l.units, state(call_.last[2 * i + 1]),
           call_.size[4]);
    }
    give(g, output(g.record), g.next, 1, state(call_.output), call_.rows);
  }

  int64_t block_count() const { return ceil_div(panels_, kBlock) * call_.batch; }
  void backward_share(int index, int count);
  void recall(const Group& g) const;
  void descend(S* record, S* beside, const S* taped) const;
  void learn(const S* records, int64_t panels, S* sums) const;
  void give_back(const Group& g) const;
  void export_gradients() const;

  const Call& call_;
  const Preprocess<S> preprocess_;
  Workspace space_;
  Layer layer_[2];
  int count_ = 0;
  int64_t panels_ = 0;  // of a learner
  // rows of a record, where its top is, of the gates, and of what goes beside them
  int64_t height_ = 0, top_ = 0, tape_ = 0, beside_ = 0;
  int64_t own_ = 0;  // numbers that a thread works in
  S *head_ = nullptr, *records_ = nullptr;
  // on the way back: gradients of weights, and where those of the states are beside a record
  int64_t sums_ = 0, ranges_ = 0, d_in_ = 0, d_states_[2];
  S* gradients_ = nullptr;
};

}  // namespace attractor::ATTRACTOR_PATH
