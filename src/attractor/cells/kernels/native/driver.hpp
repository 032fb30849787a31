// The one time loop, there and back, for every cell: packing, threads, products, records.
#pragma once

#include "cell.hpp"
#include "threads.hpp"

namespace attractor::ATTRACTOR_PATH {

constexpr int64_t kProjected = 96;  // rows of input that are projected at a time, at least
constexpr int64_t kSummed = 256;    // rows whose part of the weights' gradients is summed at a time

template <class S>
class Run {
 public:
  Run(const Call& call, Cell<S>& cell, bool back) : call_(call), cell_(cell), back_(back) {
    offsets_ = space_.array<int64_t>(call.steps + 1);
    offsets_[0] = 0;
    for (int64_t t = 0; t < call.steps; t++) offsets_[t + 1] = offsets_[t] + running(t);
    projected_ = call.weight[0] != nullptr;
    state_ = cell.width - cell.inner;
    width_ = record_width(call, cell);
    shift_ = width_ - cell.width;
    x_width_ = padded<S>(cell_.inputs + 1);
    for (int i = 0; i < cell_.link_count; i++) pack(cell_.links[i]);
    for (int i = 0; i < cell_.vector_count; i++) copy_vector(*cell_.vectors[i]);
    initial_ = space_.zeros<S>(call.batch * width_);
    for (int i = 0; i < cell_.state_count; i++)
      if (call.state[i]) spread(array(call.state[i]), cell_.states[i].size, call.batch,
                                initial_ + shift_ + cell_.states[i].offset, width_);
  }

  // Of a record, with the mixed state behind it if there is one.
  static int64_t record_width(const Call& call, const Cell<S>& cell) {
    bool mixes = false;
    for (int i = 0; i < cell.state_count; i++) mixes |= call.keep[i] || call.keep_rate[i] != 0;
    return cell.width + (mixes ? cell.width - cell.inner : 0);
  }

  static void forward(const Call& call, Cell<S>& cell) {
    Run run(call, cell, false);
    run.set_chunk(kProjected);
    int64_t kept = call.tape ? 0 : (run.chunk_ + 1) * call.batch;
    run.ring_ = run.space_.template array<S>(kept * run.width_);
    run.start(&Run::forward_rows);
  }

  static void backward(const Call& call, Cell<S>& cell) {
    Run run(call, cell, true);
    run.set_chunk(kSummed);
    run.prepare_gradients();
    run.start(&Run::backward_rows);
    run.export_gradients();
  }

 private:
  typedef void (Run::*Part)(int index, int count, Meeting& meeting);

  struct Share {  // the sequences of one thread
    int64_t first, last;
  };

  // ---- sizes ----

  int64_t running(int64_t t) const { return call_.running ? call_.running[t] : call_.batch; }

  int64_t running_in(Share s, int64_t t) const {
    int64_t last = least(s.last, t < call_.steps ? running(t) : 0);
    return last > s.first ? last - s.first : 0;
  }

  void set_chunk(int64_t rows) {
    chunk_ = least(ceil_div(rows, call_.batch), call_.steps);
    chunk_rows_ = chunk_ * call_.batch;
    x_ = space_.array<S>(chunk_rows_ * x_width_);
  }

  // Sequences are shared out so that each thread has as many steps.
  Share share(int index, int count) const {
    int64_t bounds[2] = {0, 0}, done = 0, b = 0;
    for (int side = 0; side < 2; side++) {
      int64_t goal = call_.rows * (index + side) / count;
      for (; b < call_.batch && done < goal; b++) done += length(b);
      bounds[side] = b;
    }
    return {bounds[0], bounds[1]};
  }

  int64_t length(int64_t b) const {
    if (!call_.running) return call_.steps;
    int64_t low = 0, high = call_.steps;  // the first step at which b no longer runs
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (running(middle) > b)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void start(Part part) {
    part_ = part;
    int64_t work = 0;
    for (int i = 0; i < cell_.link_count; i++)
      work += cell_.links[i].rows() * cell_.links[i].columns();
    bool worth = (work + width_) * call_.rows > 1000000;
    int wanted = worth ? int(least(call_.threads, call_.batch)) : 1;
    together(wanted, [](void* run, int index, int count, Meeting& meeting) {
      Run* self = static_cast<Run*>(run);
      (self->*self->part_)(index, count, meeting);
    }, this);
  }

  // ---- memory ----

  static const S* array(const void* p) { return static_cast<const S*>(p); }
  static S* array(void* p) { return static_cast<S*>(p); }

  static void spread(const S* from, int64_t size, int64_t rows, S* to, int64_t width) {
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * width, from + r * size, size * sizeof(S));
  }

  static void gather(const S* from, int64_t width, int64_t rows, S* to, int64_t size) {
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * size, from + r * width, size * sizeof(S));
  }

  static void sum(const S* from, int64_t size, int64_t rows, S* to, int64_t width) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < size; j++) to[r * width + j] += from[r * size + j];
  }

  // The record of sequence 0 at step t, from -1 on.
  S* record(int64_t t) const {
    if (!call_.tape) return ring_ + (t - chunk_start(t) + 1) * call_.batch * width_;
    return t < 0 ? initial_ : array(call_.tape) + offsets_[t] * width_;
  }

  int64_t chunk_start(int64_t t) const { return t < 0 ? 0 : t / chunk_ * chunk_; }

  S* before(int64_t t) const {
    if (call_.tape || t % chunk_) return record(t - 1);
    return ring_;
  }

  // The rows of step t in what is kept for one chunk only.
  int64_t in_chunk(int64_t t) const { return offsets_[t] - offsets_[t / chunk_ * chunk_]; }

  Step<S> step(Share s, int64_t t) const {
    int64_t at = in_chunk(t) + s.first, inner = cell_.inner;
    return {running_in(s, t),
            width_,
            cell_.grad_width,
            state_,
            x_width_,
            record(t) + s.first * width_,
            before(t) + s.first * width_ + shift_,
            back_ ? grad_ + at * cell_.grad_width : nullptr,
            back_ ? carry_ + s.first * state_ - inner : nullptr,
            x_ + at * x_width_,
            back_ ? d_x_ + at * x_width_ : nullptr,
            s.first};
  }

  // ---- weights ----

  void pack(Link<S>& l) {
    if (l.from == From::input && !projected_) return;
    constexpr int W = kWidth<S>;
    const S *weight = array(call_.weight[l.weight]),
            *bias = l.bias < 0 ? nullptr : array(call_.weight[l.bias]);
    int64_t K = l.source.size, rows = l.rows(), columns = l.columns();
    S* packed = back_ ? space_.zeros<S>(packed_size<S>(rows, K))
                      : space_.zeros<S>(packed_size<S>(columns, rows));
    int64_t row = 0;
    for (int b = 0; b < l.blocks; b++)
      for (int64_t u = 0; u < l.to[b].size; u++, row++) {
        int64_t n = l.to[b].offset - l.to[0].offset + u;
        const S* from = weight + row * K;
        if (back_) {
          for (int64_t k = 0; k < K; k += 2 * W) {
            Place<S> to(k, rows, K);
            memcpy(packed + to.start + n * to.step, from + k, least(2 * W, K - k) * sizeof(S));
          }
        } else {
          Place<S> to(n, columns, rows);
          for (int64_t k = 0; k < K; k++) packed[to.start + k * to.step] = from[k];
          if (bias) packed[to.start + K * to.step] = bias[row];
        }
      }
    (back_ ? l.back : l.ahead) = packed;
  }

  void copy_vector(Weights<S>& v) {
    v.value = space_.zeros<S>(padded<S>(v.size));
    memcpy(v.value, call_.weight[v.weight], v.size * sizeof(S));
  }

  // ---- there ----

  void forward_rows(int index, int count, Meeting&) {
    Share s = share(index, count);
    if (!call_.tape && s.last > s.first)
      memcpy(ring_ + s.first * width_, initial_ + s.first * width_,
             (s.last - s.first) * width_ * sizeof(S));
    for (int64_t t = 0; t < call_.steps && running_in(s, t); t++) {
      if (t % chunk_ == 0) read_input(s, t);
      Step<S> now = step(s, t);
      cell_.forward(now);
      if (shift_) mix(t, now);
      show(s, t, now);
    }
  }

  // The sums of all steps of a chunk, as far as the input makes them.
  void read_input(Share s, int64_t start) {
    int64_t stop = least(start + chunk_, call_.steps);
    copy_input(s, start, stop);
    const Link<S>& l = cell_.links[0];
    if (l.from != From::input) return;
    for (int64_t t = start; t < stop && running_in(s, t); t++) {
      Step<S> now = step(s, t);
      int64_t rows = now.rows, next = t;
      // records of neighbouring steps are neighbours where nobody else has rows between
      while (next + 1 < stop && s.first == 0 && running_in(s, next) == running(next) &&
             (call_.tape || running(next) == call_.batch) && running(next + 1))
        rows += running_in(s, ++next);
      if (projected_)
        multiply<false>(now.x, x_width_, rows, l.ahead, l.columns(), l.rows(),
                        now.now + l.to[0].offset, width_);
      else
        copy_sums(l, array(call_.x) + (offsets_[t] + s.first) * cell_.inputs, rows, now.now);
      t = next;
    }
  }

  void copy_input(Share s, int64_t start, int64_t stop) {
    if (!projected_) return;
    for (int64_t t = start; t < stop; t++) {
      int64_t rows = running_in(s, t);
      const S* from = array(call_.x) + (offsets_[t] + s.first) * cell_.inputs;
      S* to = x_ + (in_chunk(t) + s.first) * x_width_;
      for (int64_t r = 0; r < rows; r++, from += cell_.inputs, to += x_width_) {
        memcpy(to, from, cell_.inputs * sizeof(S));
        to[cell_.inputs] = 1;
        for (int64_t j = cell_.inputs + 1; j < x_width_; j++) to[j] = 0;
      }
    }
  }

  void copy_sums(const Link<S>& l, const S* sums, int64_t rows, S* to) const {
    int64_t column = 0;
    for (int b = 0; b < l.blocks; column += l.to[b++].size)
      for (int64_t r = 0; r < rows; r++) {
        S* made = to + r * width_ + l.to[b].offset;
        memcpy(made, sums + r * cell_.inputs + column, l.to[b].size * sizeof(S));
        for (int64_t j = l.to[b].size; j < padded<S>(l.to[b].size); j++) made[j] = 0;
      }
  }

  // How much of state i is kept, at some units of a row.
  Vector<S> kept(int i, int64_t row, int64_t unit) const {
    if (!call_.keep[i]) return all<S>(S(call_.keep_rate[i]));
    int64_t size = cell_.states[i].size;
    return load_some(array(call_.keep[i]) + row * size + unit, size - unit);
  }

  // Zoneout: behind each record, what goes on of its state.
  void mix(int64_t t, const Step<S>& now) const {
    for (int i = 0; i < cell_.state_count; i++)
      now.each(cell_.states[i].size, [&](At<S> at) {
        Block h = cell_.states[i];
        Vector<S> keep = kept(i, offsets_[t] + at.sequence, at.unit);
        Row<S>{at.now.p + shift_}.put(h, keep * at.was(h) + (1 - keep) * at.now(h));
      });
  }

  // On the way back: the part of the gradient that goes around the step, which is held meanwhile.
  void part(int64_t t, const Step<S>& now) const {
    for (int i = 0; i < cell_.state_count; i++)
      now.each(cell_.states[i].size, [&](At<S> at) {
        Block h = cell_.states[i];
        Vector<S> d = at.carry(h), around = kept(i, offsets_[t] + at.sequence, at.unit) * d;
        store(held_ + at.sequence * state_ + h.offset - cell_.inner + at.unit, around);
        at.carry.put(h, d - around);
      });
  }

  void join(const Step<S>& now) const {
    for (int i = 0; i < cell_.state_count; i++)
      now.each(cell_.states[i].size, [&](At<S> at) {
        Block h = cell_.states[i];
        at.carry.add(h, load(held_ + at.sequence * state_ + h.offset - cell_.inner + at.unit));
      });
  }

  // What callers see of a step.
  void show(Share s, int64_t t, const Step<S>& now) const {
    int64_t row = offsets_[t] + s.first, ended = running_in(s, t + 1);
    Block y = cell_.output;
    if (call_.output)
      gather(now.now + (y.offset < cell_.inner ? 0 : shift_) + y.offset, width_, now.rows, array(call_.output) + row * y.size, y.size);
    for (int i = 0; i < cell_.state_count; i++) {
      Block h = cell_.states[i];
      const S* from = now.now + shift_ + h.offset;
      if (call_.every[i])
        gather(from, width_, now.rows, array(call_.every[i]) + row * h.size, h.size);
      if (call_.last[i])
        gather(from + ended * width_, width_, now.rows - ended,
               array(call_.last[i]) + (s.first + ended) * h.size, h.size);
    }
    if (!call_.tape && (t + 1) % chunk_ == 0)
      memcpy(ring_ + s.first * width_, now.now, now.rows * width_ * sizeof(S));
  }

  // ---- back ----

  void prepare_gradients() {
    grad_ = space_.array<S>(chunk_rows_ * cell_.grad_width);
    carry_ = space_.zeros<S>(call_.batch * state_);
    held_ = space_.array<S>(call_.batch * state_);
    d_x_ = space_.array<S>(chunk_rows_ * x_width_);
    scratch_ = space_.array<S>(chunk_rows_ * kRows * call_.threads);
    for (int i = 0; i < cell_.state_count; i++)
      if (call_.d_last[i])
        spread(array(call_.d_last[i]), cell_.states[i].size, call_.batch,
               carry_ + cell_.states[i].offset - cell_.inner, state_);
    for (int i = 0; i < cell_.link_count; i++) {
      Link<S>& l = cell_.links[i];
      panels_[i] = space_.array<S>(chunk_rows_ * padded<S>(l.columns()));
      if (learns(l)) l.gradient = space_.zeros<S>(l.rows() * padded<S>(l.columns()));
    }
    for (int i = 0; i < cell_.vector_count; i++)
      vector_sums_[i] = space_.zeros<S>(padded<S>(cell_.vectors[i]->size));
  }

  bool learns(const Link<S>& l) const {
    return call_.d_weight[l.weight] || (l.bias >= 0 && call_.d_weight[l.bias]);
  }

  void backward_rows(int index, int count, Meeting& meeting) {
    Share s = share(index, count);
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
    for (int i = 0; i < cell_.state_count; i++)
      if (call_.d_state[i] && s.last > s.first)
        gather(carry_ + s.first * state_ + cell_.states[i].offset -
                   cell_.inner,
               state_, s.last - s.first,
               array(call_.d_state[i]) + s.first * cell_.states[i].size, cell_.states[i].size);
  }

  // Add the gradients that come from outside at this step.
  void receive(Share s, int64_t t, const Step<S>& now) const {
    int64_t row = offsets_[t] + s.first;
    Block y = cell_.output;
    bool state = y.offset >= cell_.inner;
    if (!state)
      for (int64_t r = 0; r < now.rows; r++)
        memset(now.grad + r * cell_.grad_width + y.offset, 0, padded<S>(y.size) * sizeof(S));
    if (call_.d_output)
      sum(array(call_.d_output) + row * y.size, y.size, now.rows,
          (state ? now.carry : now.grad) + y.offset, state ? now.carry_width : now.grad_width);
    for (int i = 0; i < cell_.state_count; i++)
      if (call_.d_every[i])
        sum(array(call_.d_every[i]) + row * cell_.states[i].size, cell_.states[i].size, now.rows,
            now.carry + cell_.states[i].offset, now.carry_width);
  }

  void clear_d_x(Share s, int64_t start, int64_t stop) const {
    for (int64_t t = start; t < stop; t++)
      memset(d_x_ + (in_chunk(t) + s.first) * x_width_, 0,
             running_in(s, t) * x_width_ * sizeof(S));
  }

  void give_input(Share s, int64_t start, int64_t stop) {
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
      if (cell_.reads_x)
        multiply<true>(from, cell_.grad_width, rows, l.back, l.rows(), N, now.d_x, x_width_);
      else
        multiply<false>(from, cell_.grad_width, rows, l.back, l.rows(), N, now.d_x, x_width_);
      gather(now.d_x, x_width_, rows, to, cell_.inputs);
      t = next;
    }
  }

  // Bring what a matrix has read to panels; threads share the panels.
  void panel(int i, int64_t start, int64_t stop, int index, int count) const {
    const Link<S>& l = cell_.links[i];
    if (!l.gradient) return;
    constexpr int W = kWidth<S>;
    int64_t N = padded<S>(l.columns()), rows = in_chunk_end(stop), parts = ceil_div(N, 2 * W);
    for (int64_t n = parts * index / count * 2 * W; n < least(parts * (index + 1) / count * 2 * W, N);
         n += 2 * W) {
      int64_t size = least(2 * W, N - n);
      S* to = panels_[i] + n * rows;
      for (int64_t t = start; t < stop; t++) {
        const S* from = source(l, t);
        int64_t width = l.from == From::input ? x_width_ : width_;
        for (int64_t r = 0; r < running(t); r++, to += size)
          for (int64_t j = 0; j < size; j += W) store(to + j, load(from + r * width + n + j));
      }
    }
  }

  int64_t in_chunk_end(int64_t stop) const {
    return offsets_[stop] - offsets_[(stop - 1) / chunk_ * chunk_];
  }

  const S* source(const Link<S>& l, int64_t t) const {
    if (l.from == From::input) return x_ + in_chunk(t) * x_width_;
    return (l.from == From::was ? before(t) + shift_ : record(t)) + l.source.offset;
  }

  // Each thread sums some rows of each matrix's gradient, over all sequences.
  void learn(int i, int64_t stop, int index, int count) const {
    const Link<S>& l = cell_.links[i];
    if (!l.gradient) return;
    int64_t rows = in_chunk_end(stop), tiles = ceil_div(l.rows(), kRows);
    int64_t first = tiles * index / count * kRows;
    int64_t last = least(tiles * (index + 1) / count * kRows, l.rows());
    outer(grad_ + l.to[0].offset, cell_.grad_width, first, last, panels_[i], rows,
          padded<S>(l.columns()), l.gradient, scratch_ + index * chunk_rows_ * kRows);
  }

  void learn_vector(int i, int64_t stop, int index, int count) const {
    const Weights<S>& v = *cell_.vectors[i];
    constexpr int W = kWidth<S>;
    int64_t parts = padded<S>(v.size) / W, rows = in_chunk_end(stop);
    if (!v.gradient.size) return;
    for (int64_t p = parts * index / count; p < parts * (index + 1) / count; p++) {
      Vector<S> total = load(vector_sums_[i] + p * W);
      for (int64_t r = 0; r < rows; r++)
        total += load(grad_ + r * cell_.grad_width + v.gradient.offset + p * W);
      store(vector_sums_[i] + p * W, total);
    }
  }

  void export_gradients() const {
    for (int i = 0; i < cell_.link_count; i++) {
      const Link<S>& l = cell_.links[i];
      if (!l.gradient) continue;
      int64_t N = padded<S>(l.columns()), K = l.source.size, row = 0;
      S *weight = array(call_.d_weight[l.weight]),
        *bias = l.bias < 0 ? nullptr : array(call_.d_weight[l.bias]);
      for (int b = 0; b < l.blocks; b++)
        for (int64_t u = 0; u < l.to[b].size; u++, row++) {
          const S* from = l.gradient + (l.to[b].offset - l.to[0].offset + u) * N;
          if (weight) memcpy(weight + row * K, from, K * sizeof(S));
          if (bias) bias[row] = from[K];
        }
    }
    for (int i = 0; i < cell_.vector_count; i++) {
      const Weights<S>& v = *cell_.vectors[i];
      if (call_.d_weight[v.weight])
        memcpy(call_.d_weight[v.weight], vector_sums_[i], v.size * sizeof(S));
    }
  }

  const Call& call_;
  Workspace space_;
  Cell<S>& cell_;
  const bool back_;
  bool projected_ = false;
  Part part_ = nullptr;
  int64_t* offsets_;
  int64_t chunk_ = 1, chunk_rows_ = 0, x_width_ = 0;
  int64_t width_ = 0, shift_ = 0, state_ = 0;  // of a record, to its mixed state, of a state
  S *initial_, *ring_ = nullptr, *x_ = nullptr;
  S *grad_ = nullptr, *carry_ = nullptr, *d_x_ = nullptr, *held_ = nullptr,
    *scratch_ = nullptr;
  S *panels_[6], *vector_sums_[4];
};

}  // namespace attractor::ATTRACTOR_PATH
