// The one time loop, there and back, for every cell: records, packing, and who does what.
#pragma once

#include "pack.hpp"
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
    for (int i = 0; i < cell_.link_count; i++) {
      Link<S>& l = cell_.links[i];
      l.packed = space_.array<S>(back ? packed_size<S>(l.rows(), l.source.size)
                                      : packed_size<S>(l.columns(), l.rows()));
    }
    for (int i = 0; i < cell_.vector_count; i++) copy_vector(*cell_.vectors[i]);
    initial_ = space_.zeros<S>(call.batch * width_);
    for (int i = 0; i < cell_.state_count; i++)
      if (call.state[i]) spread(array(call.state[i]), cell_.states[i], call.batch,
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

  // Call f(first, last, thread) for this thread's part of so many pieces; with a crew for all.
  template <class F>
  void divide(int64_t pieces, int index, int count, F f) const {
    if (crew_) return crew_->share(pieces, f);
    f(pieces * index / count, pieces * (index + 1) / count, index);
  }

  // Threads share the sequences. Where those are few, one thread takes the steps and shares each
  // product with the others, so that all read a part of the weights, and not each all of them.
  void start(Part part) {
    part_ = part;
    int64_t work = width_, largest = 0;
    for (int i = 0; i < cell_.link_count; i++) {
      const Link<S>& l = cell_.links[i];
      int64_t size = l.rows() * l.columns(), alone = call_.batch == 1 ? chunk_rows_ : 0;
      int64_t product = size * (l.from == From::input ? alone : call_.batch);
      work += size, largest = product > largest ? product : largest;
    }
    bool worth = work * call_.rows > 20 * kShared;
    int crew = int(least(call_.threads, cell_.units / kUnits));
    if (worth && crew > 1 && 2 * call_.batch < crew * kRows && largest >= crew * kShared)
      return lead(crew);
    int wanted = worth ? int(least(call_.threads, call_.batch)) : 1;
    together(wanted, [](void* run, int index, int count, Meeting& meeting) {
      Run* self = static_cast<Run*>(run);
      (self->*self->part_)(index, count, meeting);
    }, this);
  }

  void lead(int count) {
    Crew crew(count);
    crew_ = &crew;
    together(count, [](void* run, int index, int, Meeting&) {
      Run* self = static_cast<Run*>(run);
      if (index) return self->crew_->help(index);
      Meeting nobody(1);
      (self->*self->part_)(0, 1, nobody);
      self->crew_->dismiss();
    }, this);
  }

  // ---- memory ----

  static const S* array(const void* p) { return static_cast<const S*>(p); }
  static S* array(void* p) { return static_cast<S*>(p); }

  // Between rows without padding and a block of neighbouring records.
  static void spread(const S* from, Block b, int64_t rows, S* to, int64_t width) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t i = 0; i < b.rows; i++, from += b.size)
        memcpy(to + r * width + i * padded<S>(b.size), from, b.size * sizeof(S));
  }

  static void gather(const S* from, int64_t width, int64_t rows, S* to, Block b) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t i = 0; i < b.rows; i++, to += b.size)
        memcpy(to, from + r * width + i * padded<S>(b.size), b.size * sizeof(S));
  }

  static void sum(const S* from, Block b, int64_t rows, S* to, int64_t width) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t i = 0; i < b.rows; i++, from += b.size)
        for (int64_t j = 0; j < b.size; j++) to[r * width + i * padded<S>(b.size) + j] += from[j];
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
            s.first,
            call_.noise ? array(call_.noise) + (offsets_[t] + s.first) * cell_.noise : nullptr,
            crew_};
  }

  // ---- weights ----

  void pack(int index, int count) const {
    for (int i = 0; i < cell_.link_count; i++) {
      const Link<S>& l = cell_.links[i];
      if (l.from == From::input && !projected_) continue;
      const S *weight = array(call_.weight[l.weight]),
              *bias = l.bias < 0 ? nullptr : array(call_.weight[l.bias]);
      int64_t panels = back_ ? panels_back(l) : panels_ahead(l);
      divide(panels, index, count, [&](int64_t first, int64_t last, int) {
        for (int64_t p = first; p < last; p++)
          back_ ? pack_back(l, weight, p) : pack_ahead(l, weight, bias, p);
      });
    }
  }

  void copy_vector(Weights<S>& v) {
    Block b{0, v.size, v.rows};
    v.value = space_.zeros<S>(extent<S>(b));
    spread(array(call_.weight[v.weight]), b, 1, v.value, 0);
  }

  // ---- there: there.hpp ----

  void forward_rows(int index, int count, Meeting&);
  void read_input(Share s, int64_t start);
  void copy_input(Share s, int64_t start, int64_t stop);
  void copy_sums(const Link<S>& l, const S* sums, int64_t rows, S* to) const;
  Vector<S> kept(int i, int64_t row, int64_t unit) const;
  void mix(int64_t t, const Step<S>& now) const;
  void show(Share s, int64_t t, const Step<S>& now) const;

  // ---- back: back.hpp ----

  void prepare_gradients();
  bool learns(const Link<S>& l) const;
  void backward_rows(int index, int count, Meeting& meeting);
  void part(int64_t t, const Step<S>& now) const;
  void join(const Step<S>& now) const;
  void receive(Share s, int64_t t, const Step<S>& now) const;
  void clear_d_x(Share s, int64_t start, int64_t stop) const;
  void give_input(Share s, int64_t start, int64_t stop);
  void panel(int i, int64_t start, int64_t stop, int index, int count) const;
  int64_t in_chunk_end(int64_t stop) const;
  const S* source(const Link<S>& l, int64_t t) const;
  void learn(int i, int64_t stop, int index, int count) const;
  void learn_vector(int i, int64_t stop, int index, int count) const;
  void clear_gradients(int index, int count) const;
  void give_gradients(int index, int count) const;

  const Call& call_;
  Workspace space_;
  Cell<S>& cell_;
  const bool back_;
  bool projected_ = false;
  Part part_ = nullptr;
  Crew* crew_ = nullptr;
  int64_t* offsets_;
  int64_t chunk_ = 1, chunk_rows_ = 0, x_width_ = 0;
  int64_t width_ = 0, shift_ = 0, state_ = 0;  // of a record, to its mixed state, of a state
  S *initial_, *ring_ = nullptr, *x_ = nullptr;
  S *grad_ = nullptr, *carry_ = nullptr, *d_x_ = nullptr, *held_ = nullptr,
    *scratch_ = nullptr;
  S *panels_[kLinks], *vector_sums_[kVectors];
};

}  // namespace attractor::ATTRACTOR_PATH
