// What a cell is made of. All that one sequence has at one step is a record: a row of blocks, each
// padded to whole vectors, the sums and gates first and the state last. A step reads the record
// before (`was`) and writes this one (`now`); the records of all steps are the tape for the way
// back. There, `grad` holds the gradients of this record's blocks but the state, and `carry` those
// of the state: of this step when a step back begins, of the step before when it ends.
//
// With zoneout what goes on is not the state of the record but a mix of it and the state before,
// which stands behind the record; `was` then shows that, and nothing but states is read of it.
#pragma once

#include <type_traits>

#include "call.hpp"
#include "matmul.hpp"
#include "memory.hpp"
#include "normalise.hpp"
#include "threads.hpp"

namespace attractor::ATTRACTOR_PATH {

struct Block {
  int64_t offset, size;  // size without padding
  int64_t rows = 1;      // of a state that is a matrix: so many rows of `size`, each padded
};

template <class S>
inline int64_t extent(Block b) {  // with padding
  return b.rows * padded<S>(b.size);
}

enum class From { input, was, now };

constexpr int kLinks = 10, kVectors = 12;  // that a cell may have

// A vector of parameters, and the block whose sum over all records is its gradient.
template <class S>
struct Weights {
  int weight = -1;
  Block gradient{};
  S* value = nullptr;  // padded
  int64_t size = 0, rows = 1;  // of a matrix: so many rows of `size`, each padded
};

// A layer norm, scale LN(z) + shift, of `rows` neighbours of `size` numbers as one vector, with
// what it keeps: LN(z), one over the deviation of z, and the gradient of z.
template <class S>
struct Norm {
  Weights<S> scale, shift;
  Block normal{}, deviation{}, given{};

  explicit operator bool() const { return normal.size; }

  // z, which is in `normal`, becomes LN(z).
  void apply(S* now) const {
    now[deviation.offset] = normalise(now + normal.offset, normal.size, normal.rows);
  }
  Vector<S> operator()(const S* now, int64_t i) const {
    return load(scale.value + i) * load(now + normal.offset + i) + load(shift.value + i);
  }
  // From d, the gradient of what the norm makes, at some units, and when all have it to that of z.
  void take(const S* now, S* grad, int64_t i, Vector<S> d) const {
    store(grad + scale.gradient.offset + i, d * load(now + normal.offset + i));
    store(grad + shift.gradient.offset + i, d);
    store(grad + given.offset + i, d * load(scale.value + i));
  }
  void give(const S* now, S* grad) const {
    normalise_back(now + normal.offset, now[deviation.offset], grad + given.offset, normal.size,
                   normal.rows);
  }
};

// A matrix: now[to] += weight source. The blocks of `to` are neighbours and stack its rows. With a
// norm it is that of what the matrix makes which is added.
template <class S>
struct Link {
  int weight = 0;  // which of the call's
  From from = From::was;
  Block source{}, given{};  // what is read, and where its gradient goes: by default the same
  Block to[8];
  int blocks = 0;
  int bias = -1;  // which of the call's, added as if the source had one more entry, a one
  Norm<S> norm;
  S* packed = nullptr;    // panels, for the way there or back
  S* gradient = nullptr;  // rows of the padded source

  Block made() const { return norm ? norm.given : to[0]; }  // whose gradient the weights get
  int64_t columns() const { return source.size + (bias >= 0); }
  int64_t rows() const {  // padded
    return to[blocks - 1].offset + padded<S>(to[blocks - 1].size) - to[0].offset;
  }
};

// The vectors at the same units of all blocks of one record.
template <class S>
struct Row {
  S* p;
  Vector<S> operator()(Block b) const { return load(p + b.offset); }
  void put(Block b, Vector<S> v) const { store(p + b.offset, v); }
  void add(Block b, Vector<S> v) const { put(b, (*this)(b) + v); }
  // In blocks that are parts of others and so not padded: n numbers are left in them.
  Vector<S> some(Block b, int64_t n) const { return load_some(p + b.offset, n); }
  void put_some(Block b, Vector<S> v, int64_t n) const { store_some(p + b.offset, v, n); }
};

template <class S>
struct At {
  Row<S> now, was, grad, carry, x, d_x;
  int64_t unit, sequence;
  Vector<S> operator()(const Weights<S>& w) const { return load(w.value + unit); }
};

// Some sequences at one step.
template <class S>
struct Step {
  int64_t rows, width, grad_width, carry_width, x_width;
  S *now, *was, *grad, *carry, *x, *d_x;
  int64_t first;  // sequence
  const S* noise;
  Crew* crew;  // that shares its products, or null

  // Call f for each vector of `units`, in each row.
  template <class F>
  void each(int64_t units, F f) const {
    for (int64_t r = 0; r < rows; r++) row(r, units, f);
  }

  // Flat, since no register of vectors survives a call.
  template <class F>
  [[gnu::flatten]] void row(int64_t r, int64_t units, F f) const {
    for (int64_t j = 0; j < units; j += kWidth<S>) f(at(r, j));
  }

  At<S> at(int64_t r, int64_t j) const {
    return {{now + r * width + j},
            {was + r * width + j},
            {grad ? grad + r * grad_width + j : nullptr},
            {carry ? carry + r * carry_width + j : nullptr},
            {x + r * x_width + j},
            {d_x ? d_x + r * x_width + j : nullptr},
            j,
            first + r};
  }

  // v where recurrent dropout leaves it, whose mask of `size` units is the noise, if there is any.
  Vector<S> masked(Vector<S> v, const At<S>& at, int64_t size) const {
    if (!noise) return v;
    return v * load_some(noise + (at.sequence - first) * size + at.unit, size - at.unit);
  }

  void set(const Link<S>* l) const { ahead<false>(*l); }
  void add(const Link<S>* l) const { ahead<true>(*l); }
  void set_back(const Link<S>* l) const { back<false>(*l); }
  void add_back(const Link<S>* l) const { back<true>(*l); }

 private:
  template <bool Add>
  void ahead(const Link<S>& l) const {
    const S* source = (l.from == From::was ? was : now) + l.source.offset;
    auto product = [&](auto add, Block to) {
      share_product<add.value>(crew, source, width, rows, l.packed, l.source.size, l.rows(),
                               now + to.offset, width);
    };
    if (!l.norm) return product(std::bool_constant<Add>(), l.to[0]);
    product(std::false_type(), l.norm.normal);
    for (int64_t r = 0; r < rows; r++) {
      S *row = now + r * width, *to = row + l.to[0].offset;
      l.norm.apply(row);
      for (int64_t i = 0; i < l.rows(); i += kWidth<S>)
        store(to + i, Add ? load(to + i) + l.norm(row, i) : l.norm(row, i));
    }
  }

  template <bool Add>
  void back(const Link<S>& l) const {
    bool state = l.from == From::was;
    S* to = (state ? carry : grad) + l.given.offset;
    for (int64_t r = 0; r < rows && l.norm; r++) {
      S *row = now + r * width, *d = grad + r * grad_width;
      for (int64_t i = 0; i < l.rows(); i += kWidth<S>)
        l.norm.take(row, d, i, load(d + l.to[0].offset + i));
      l.norm.give(row, d);
    }
    share_product<Add>(crew, grad + l.made().offset, grad_width, rows, l.packed, l.rows(),
                       padded<S>(l.source.size), to, state ? carry_width : grad_width);
  }
};

// The blocks, matrices and vectors that a cell declares. Blocks of the state come last.
template <class S>
struct Cell {
  using V = Vector<S>;

  const Call& call;
  const int64_t inputs, units;
  int64_t width = 0;  // of a record
  int64_t inner = 0;  // of a record without its state
  int64_t grad_width = 0;
  Link<S> links[kLinks];
  int link_count = 0;
  Weights<S>* vectors[kVectors];
  int vector_count = 0;
  Block states[kStates];
  int state_count = 0;
  Block output{};
  bool reads_x = false;  // beyond its matrix
  int64_t noise = 0;     // numbers per row of the call's noise

  explicit Cell(const Call& c) : call(c), inputs(c.size[0]), units(c.size[1]) {}
  Cell(const Cell&) = delete;

  // One step there: from `was`, and what the input has made of `now`, to all of `now`. One step
  // back: from `carry` to `grad` and the `carry` of the step before.
  virtual void forward(const Step<S>& s) const = 0;
  virtual void backward(const Step<S>& s) const = 0;

  Block block(int64_t size) {
    Block made{width, size};
    width = inner = grad_width = width + padded<S>(size);
    return made;
  }

  Block state(int64_t size, int64_t rows = 1) {
    Block made{width, size, rows};
    width += extent<S>(made);
    return states[state_count++] = made;
  }

  // A block that stands behind the state.
  Block behind(int64_t size, int64_t rows = 1) {
    Block made{width, size, rows};
    width += extent<S>(made);
    return made;
  }

  // A block that exists on the way back only.
  Block gradient(int64_t size, int64_t rows = 1) {
    Block made{grad_width, size, rows};
    grad_width += extent<S>(made);
    return made;
  }

  // The layer norm of some blocks, if the call has its scale and shift at `weight`.
  void join(Norm<S>& norm, int weight, int64_t size, int64_t rows = 1) {
    if (!call.weight[weight]) return;
    norm.normal = behind(size, rows), norm.deviation = behind(1);
    norm.given = gradient(size, rows);
    vector(norm.scale, weight, size, true, rows), vector(norm.shift, weight + 1, size, true, rows);
  }

  // The norms of what matrices on the state make, once all matrices are there.
  void normalise_links() {
    int weight = kNorms;
    for (int i = 0; i < link_count && weight < kMemoryNorm; i++) {
      Link<S>& l = links[i];
      if (l.from == From::input) continue;
      join(l.norm, weight, l.to[0].size, l.blocks);
      weight += 2;
    }
  }

  // The matrix of the input, which is the first of the call's weights; its bias is the second.
  template <class... Blocks>
  void reads_input(Blocks... to) {
    Link<S>* l = link(0, From::input, Block{0, inputs}, to...);
    if (call.weight[0] && call.weight[1]) l->bias = 1;
  }

  template <class... Blocks>
  Link<S>* link(int weight, From from, Block source, Blocks... to) {
    Link<S>* l = &links[link_count++];
    l->weight = weight;
    l->from = from;
    l->source = l->given = source;
    ((l->to[l->blocks++] = to), ...);
    return l;
  }

  // A vector that may be left out of the call; `active` says whether it is there.
  void vector(Weights<S>& v, int weight, int64_t size, bool learned = true, int64_t rows = 1) {
    v.weight = weight;
    v.size = size;
    v.rows = rows;
    if (!call.weight[weight]) return;
    vectors[vector_count++] = &v;
    if (learned) v.gradient = gradient(size, rows);
  }
  bool active(const Weights<S>& v) const { return call.weight[v.weight] != nullptr; }

  // For blocks that are written number by number.
  static void clear_padding(S* row, Block b) {
    for (int64_t j = b.size; j < padded<S>(b.size); j++) row[b.offset + j] = 0;
  }
};

// What a template that inherits from another must say to use its names plainly.
#define ATTRACTOR_CELL                                                              \
  using V = Vector<S>;                                                              \
  using Cell<S>::units, Cell<S>::inputs, Cell<S>::block, Cell<S>::state;            \
  using Cell<S>::gradient, Cell<S>::link, Cell<S>::reads_input, Cell<S>::vector;    \
  using Cell<S>::active, Cell<S>::output, Cell<S>::clear_padding, Cell<S>::noise

}  // namespace attractor::ATTRACTOR_PATH
