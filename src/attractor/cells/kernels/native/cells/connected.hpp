// The designs of `connected.py`: what gated cells do with their gates, which read an input that
// the memory has corrected. a = W x, the candidate, is linear.
#pragma once

#include "../cell.hpp"

namespace attractor::ATTRACTOR_PATH {

// The blocks that all of them have: gates, candidate and state.
template <class S>
struct Connected : Cell<S> {
  ATTRACTOR_CELL;
  Block G[3], A, X, H, C;  // X is the input as a highway shows it, unless that is x itself
  bool direct = true;
  using Cell<S>::Cell;

  V shown(const At<S>& at) const { return direct ? load(at.x.p) : at.now(X); }
  void give_shown(const At<S>& at, V d) const { direct ? store(at.d_x.p, d) : at.grad.put(X, d); }

  // d, and with it the gradient of a sigmoid's argument.
  static V through(V gate, V d) { return d * gate * (1 - gate); }

  // A step of a design, whose candidate is what recurrent dropout leaves of it.
  template <class Design>
  void ahead(const Step<S>& s, const At<S>& at) const {
    for (int g = 0; g < Design::gates; g++) at.now.put(G[g], sigmoid(at.now(G[g])));
    at.now.put(A, s.masked(at.now(A), at, units));
    Design::forward(*this, at);
  }

  template <class Design>
  void back(const Step<S>& s, const At<S>& at) const {
    Design::backward(*this, at);
    at.grad.put(A, s.masked(at.grad(A), at, units));
  }
};

// h = (1 - i) h + i r a
struct GruDesign {
  static constexpr const char *residual = "irc_gru", *highway = "ihc_gru";
  static constexpr int gates = 2;
  static constexpr bool cell_state = false, reads_x = false;

  template <class S>
  static void forward(const Connected<S>& c, const At<S>& at) {
    Vector<S> i = at.now(c.G[0]), r = at.now(c.G[1]), h = at.was(c.H);
    at.now.put(c.H, (1 - i) * h + i * (r * at.now(c.A)));
  }

  template <class S>
  static void backward(const Connected<S>& c, const At<S>& at) {
    Vector<S> i = at.now(c.G[0]), r = at.now(c.G[1]), a = at.now(c.A), d = at.carry(c.H);
    at.grad.put(c.G[0], c.through(i, d * (r * a - at.was(c.H))));
    at.grad.put(c.G[1], c.through(r, d * i * a)), at.grad.put(c.A, d * i * r);
    at.carry.put(c.H, d * (1 - i));
  }
};

// c = f c + i a;  h = o tanh c
struct LstmDesign {
  static constexpr const char *residual = "irc_lstm", *highway = "ihc_lstm";
  static constexpr int gates = 3;
  static constexpr bool cell_state = true, reads_x = false;

  template <class S>
  static void forward(const Connected<S>& k, const At<S>& at) {
    Vector<S> c = at.now(k.G[0]) * at.was(k.C) + at.now(k.G[1]) * at.now(k.A);
    at.now.put(k.C, c), at.now.put(k.H, at.now(k.G[2]) * tanh(c));
  }

  template <class S>
  static void backward(const Connected<S>& k, const At<S>& at) {
    Vector<S> f = at.now(k.G[0]), i = at.now(k.G[1]), o = at.now(k.G[2]), d_h = at.carry(k.H);
    Vector<S> seen = tanh(at.now(k.C)), d_c = at.carry(k.C) + d_h * o * (1 - seen * seen);
    at.grad.put(k.G[0], k.through(f, d_c * at.was(k.C)));
    at.grad.put(k.G[1], k.through(i, d_c * at.now(k.A)));
    at.grad.put(k.G[2], k.through(o, d_h * seen)), at.grad.put(k.A, d_c * i);
    at.carry.put(k.C, d_c * f), at.carry.put(k.H, Vector<S>{});
  }
};

// c = f c + (1 - f) a;  h = p c + (1 - p) x
struct SruDesign {
  static constexpr const char* residual = "irc_sru";
  static constexpr int gates = 2;
  static constexpr bool cell_state = true, reads_x = true;

  template <class S>
  static void forward(const Connected<S>& k, const At<S>& at) {
    Vector<S> f = at.now(k.G[0]), p = at.now(k.G[1]), a = at.now(k.A), x = k.shown(at);
    Vector<S> c = f * at.was(k.C) + (1 - f) * a;
    at.now.put(k.C, c), at.now.put(k.H, p * c + (1 - p) * x);
  }

  template <class S>
  static void backward(const Connected<S>& k, const At<S>& at) {
    Vector<S> f = at.now(k.G[0]), p = at.now(k.G[1]), d_h = at.carry(k.H);
    Vector<S> d_c = at.carry(k.C) + d_h * p;
    at.grad.put(k.G[0], k.through(f, d_c * (at.was(k.C) - at.now(k.A))));
    at.grad.put(k.G[1], k.through(p, d_h * (at.now(k.C) - k.shown(at))));
    at.grad.put(k.A, d_c * (1 - f)), k.give_shown(at, d_h * (1 - p));
    at.carry.put(k.C, d_c * f), at.carry.put(k.H, Vector<S>{});
  }
};

// c = f c + (1 - f) a;  h = o c
struct TLstmDesign {
  static constexpr const char* residual = "irc_tlstm";
  static constexpr int gates = 2;
  static constexpr bool cell_state = true, reads_x = false;

  template <class S>
  static void forward(const Connected<S>& k, const At<S>& at) {
    Vector<S> f = at.now(k.G[0]), c = f * at.was(k.C) + (1 - f) * at.now(k.A);
    at.now.put(k.C, c), at.now.put(k.H, at.now(k.G[1]) * c);
  }

  template <class S>
  static void backward(const Connected<S>& k, const At<S>& at) {
    Vector<S> f = at.now(k.G[0]), o = at.now(k.G[1]), d_h = at.carry(k.H);
    Vector<S> d_c = at.carry(k.C) + d_h * o;
    at.grad.put(k.G[0], k.through(f, d_c * (at.was(k.C) - at.now(k.A))));
    at.grad.put(k.G[1], k.through(o, d_h * at.now(k.C))), at.grad.put(k.A, d_c * (1 - f));
    at.carry.put(k.C, d_c * f), at.carry.put(k.H, Vector<S>{});
  }
};

// h = f h + (1 - f) a
struct FastGrnnDesign {
  static constexpr const char* residual = "irc_fastgrnn";
  static constexpr int gates = 1;
  static constexpr bool cell_state = false, reads_x = false;

  template <class S>
  static void forward(const Connected<S>& c, const At<S>& at) {
    Vector<S> f = at.now(c.G[0]);
    at.now.put(c.H, f * at.was(c.H) + (1 - f) * at.now(c.A));
  }

  template <class S>
  static void backward(const Connected<S>& c, const At<S>& at) {
    Vector<S> f = at.now(c.G[0]), d = at.carry(c.H);
    at.grad.put(c.G[0], c.through(f, d * (at.was(c.H) - at.now(c.A))));
    at.grad.put(c.A, d * (1 - f)), at.carry.put(c.H, d * f);
  }
};

// Input residual connection: gates = sigmoid(W x + M h + b), where M is W (alpha U). M comes either
// as one matrix, or as U and W with few rows between: whichever is less work.
// sizes: units, rows between
template <class S, class Design>
struct Residual : Connected<S> {
  ATTRACTOR_CELL;
  using Connected<S>::G, Connected<S>::A, Connected<S>::X, Connected<S>::H, Connected<S>::C;
  using Connected<S>::direct;
  static constexpr const char* name = Design::residual;
  Block B;  // U h, between the two
  Link<S>*narrow = nullptr, *gates;

  explicit Residual(const Call& c) : Connected<S>(c) {
    noise = units;
    for (int g = 0; g < Design::gates; g++) G[g] = block(units);
    A = block(units);
    direct = inputs == units;
    bool through = Design::reads_x && !direct;
    if (through) X = block(units);
    if (c.weight[3]) B = block(c.size[2]);
    output = H = state(units);
    if (Design::cell_state) C = state(units);
    this->reads_x = Design::reads_x && direct;
    if constexpr (Design::gates == 1) reads_input(G[0], A);
    if constexpr (Design::gates == 2)
      through ? reads_input(G[0], G[1], A, X) : reads_input(G[0], G[1], A);
    if constexpr (Design::gates == 3) reads_input(G[0], G[1], G[2], A);
    if (c.weight[3]) narrow = link(3, From::was, H, B);
    From from = narrow ? From::now : From::was;
    gates = link(2, from, narrow ? B : H, G[0]);
    for (int g = 1; g < Design::gates; g++) gates->to[gates->blocks++] = G[g];
  }

  void forward(const Step<S>& s) const override {
    if (narrow) s.set(narrow);
    s.add(gates);
    s.each(units, [&](At<S> at) { this->template ahead<Design>(s, at); });
  }

  void backward(const Step<S>& s) const override {
    s.each(units, [&](At<S> at) { this->template back<Design>(s, at); });
    if (!narrow) return s.add_back(gates);
    s.set_back(gates), s.add_back(narrow);
  }
};

// Input highway connection: g = sigmoid(W x + M h + b);  v = (1 - g) x + g (U h)
// gates = sigmoid(W v + b)
template <class S, class Design>
struct Highway : Connected<S> {
  ATTRACTOR_CELL;
  using Connected<S>::G, Connected<S>::A, Connected<S>::H, Connected<S>::C;
  static constexpr const char* name = Design::highway;
  Block K, B, X;  // g, U h and v
  Link<S>*mixes, *feeds, *gates;
  Weights<S> shift;
  bool sees_x;

  explicit Highway(const Call& c) : Connected<S>(c), sees_x(c.number[0] != 0) {
    noise = units;
    K = block(inputs), A = block(units), B = block(inputs), X = block(inputs);
    for (int g = 0; g < Design::gates; g++) G[g] = block(units);
    output = H = state(units);
    if (Design::cell_state) C = state(units);
    this->reads_x = true;
    sees_x ? reads_input(K, A) : reads_input(A);
    feeds = link(2, From::was, H, B), mixes = link(3, From::was, H, K);
    gates = link(4, From::now, X, G[0]);
    for (int g = 1; g < Design::gates; g++) gates->to[gates->blocks++] = G[g];
    vector(shift, 5, units);  // of the first gate
  }

  void forward(const Step<S>& s) const override {
    bool shifts = active(shift);
    s.set(feeds);
    sees_x ? s.add(mixes) : s.set(mixes);
    s.each(inputs, [&](At<S> at) {
      V g = sigmoid(at.now(K)), x = load(at.x.p);
      at.now.put(K, g), at.now.put(X, (1 - g) * x + g * at.now(B));
    });
    s.set(gates);
    s.each(units, [&](At<S> at) {
      if (shifts) at.now.add(G[0], at(shift));
      this->template ahead<Design>(s, at);
    });
  }

  void backward(const Step<S>& s) const override {
    bool shifts = active(shift);
    s.each(units, [&](At<S> at) {
      this->template back<Design>(s, at);
      if (shifts) at.grad.put(shift.gradient, at.grad(G[0]));
    });
    s.set_back(gates);
    s.each(inputs, [&](At<S> at) {
      V g = at.now(K), d = at.grad(X), x = load(at.x.p);
      at.grad.put(K, this->through(g, d * (at.now(B) - x))), at.grad.put(B, d * g);
      store(at.d_x.p, d * (1 - g));
    });
    s.add_back(feeds), s.add_back(mixes);
  }
};

template <class S>
using IrcGru = Residual<S, GruDesign>;
template <class S>
using IrcLstm = Residual<S, LstmDesign>;
template <class S>
using IrcSru = Residual<S, SruDesign>;
template <class S>
using IrcTLstm = Residual<S, TLstmDesign>;
template <class S>
using IrcFastGrnn = Residual<S, FastGrnnDesign>;
template <class S>
using IhcGru = Highway<S, GruDesign>;
template <class S>
using IhcLstm = Highway<S, LstmDesign>;

}  // namespace attractor::ATTRACTOR_PATH
