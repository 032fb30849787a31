// The way there: input, steps, and what callers see of them.
#pragma once

#include "run.hpp"

namespace attractor::ATTRACTOR_PATH {

template <class S>
void Run<S>::forward_rows(int index, int count, Meeting& meeting) {
  Share s = share(index, count);
  pack(index, count);
  meeting.wait();
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
template <class S>
void Run<S>::read_input(Share s, int64_t start) {
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
      share_product<false>(crew_, now.x, x_width_, rows, l.packed, l.columns(), l.rows(),
                      now.now + l.to[0].offset, width_);
    else
      copy_sums(l, array(call_.x) + (offsets_[t] + s.first) * cell_.inputs, rows, now.now);
    t = next;
  }
}

template <class S>
void Run<S>::copy_input(Share s, int64_t start, int64_t stop) {
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

template <class S>
void Run<S>::copy_sums(const Link<S>& l, const S* sums, int64_t rows, S* to) const {
  int64_t column = 0;
  for (int b = 0; b < l.blocks; column += l.to[b++].size)
    for (int64_t r = 0; r < rows; r++) {
      S* made = to + r * width_ + l.to[b].offset;
      memcpy(made, sums + r * cell_.inputs + column, l.to[b].size * sizeof(S));
      for (int64_t j = l.to[b].size; j < padded<S>(l.to[b].size); j++) made[j] = 0;
    }
}

// How much of state i is kept, at some units of a row.
template <class S>
Vector<S> Run<S>::kept(int i, int64_t row, int64_t unit) const {
  if (!call_.keep[i]) return all<S>(S(call_.keep_rate[i]));
  int64_t size = cell_.states[i].size;
  return load_some(array(call_.keep[i]) + row * size + unit, size - unit);
}

// Zoneout: behind each record, what goes on of its state.
template <class S>
void Run<S>::mix(int64_t t, const Step<S>& now) const {
  for (int i = 0; i < cell_.state_count; i++)
    now.each(extent<S>(cell_.states[i]), [&](At<S> at) {
      Block h = cell_.states[i];
      Vector<S> keep = kept(i, offsets_[t] + at.sequence, at.unit);
      Row<S>{at.now.p + shift_}.put(h, keep * at.was(h) + (1 - keep) * at.now(h));
    });
}

// What callers see of a step.
template <class S>
void Run<S>::show(Share s, int64_t t, const Step<S>& now) const {
  int64_t row = offsets_[t] + s.first, ended = running_in(s, t + 1);
  Block y = cell_.output;
  if (call_.output)
    gather(now.now + (y.offset < cell_.inner ? 0 : shift_) + y.offset, width_, now.rows,
           array(call_.output) + row * y.size, y);
  for (int i = 0; i < cell_.state_count; i++) {
    Block h = cell_.states[i];
    const S* from = now.now + shift_ + h.offset;
    int64_t count = h.rows * h.size;
    if (call_.every[i]) gather(from, width_, now.rows, array(call_.every[i]) + row * count, h);
    if (call_.last[i])
      gather(from + ended * width_, width_, now.rows - ended,
             array(call_.last[i]) + (s.first + ended) * count, h);
  }
  if (!call_.tape && (t + 1) % chunk_ == 0)
    memcpy(ring_ + s.first * width_, now.now, now.rows * width_ * sizeof(S));
}

}  // namespace attractor::ATTRACTOR_PATH
