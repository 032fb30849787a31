// Every kernel there and back, and every rule, on memory of exactly its size, for a compiler that watches each
// access: clang++ -fsanitize=address,undefined -DATTRACTOR_EXACT -DATTRACTOR_PATH=plain. Prints how
// many runs there were.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "path.cpp"

using namespace attractor;
using namespace attractor::ATTRACTOR_PATH;

namespace {

std::mt19937 dice(1);

template <class S>
class Heap {
 public:
  // Numbers at an address that is aligned to one number only.
  S* make(int64_t count) {
    kept_.emplace_back(new char[(count + 1) * sizeof(S)]);
    S* made = reinterpret_cast<S*>(kept_.back().get() + sizeof(S));
    std::normal_distribution<double> normal(0, 0.5);
    for (int64_t i = 0; i < count; i++) made[i] = S(normal(dice));
    return made;
  }

 private:
  std::vector<std::unique_ptr<char[]>> kept_;
};

int64_t any(int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(dice);
}

// Sizes and numbers of a kernel, from the inputs on.
void choose(const char* name, bool options, Call& call) {
  int64_t units = any(1, 40), inputs = any(0, 1) ? units : any(1, 40), heads = any(1, 4);
  int64_t part = any(1, 5), places = any(2, 20);
  std::vector<int64_t> sizes{inputs, units, any(1, 20), any(1, 9), any(1, 4)};
  for (double& number : call.number) number = options;
  if (!strncmp(name, "nru", 3))
    sizes = {inputs, units, heads * part * part, heads, heads * part};
  else if (!strcmp(name, "ntm"))
    sizes = {inputs, units, places, any(1, 9), any(1, 3), any(1, 3), any(1, places)};
  else if (!strcmp(name, "dntm"))
    sizes = {inputs, units, places, any(1, 9), any(1, 9)};
  else if (!strcmp(name, "tardis"))
    sizes = {inputs, units, places, any(1, 9), any(1, 9), any(1, 20)};
  if (strstr(name, "ntm"))
    for (int i = 0; i < 5; i++) call.number[i] = double(any(0, i ? 1 : 3));
  for (size_t i = 0; i < sizes.size(); i++) call.size[i] = sizes[i];
}

// Whether what each matrix makes can be normalised, in blocks of one size.
template <class S>
bool even(const Cell<S>& cell) {
  for (int i = 0; i < cell.link_count; i++)
    for (int b = 1; b < cell.links[i].blocks; b++)
      if (cell.links[i].to[b].size != cell.links[i].to[0].size) return false;
  return true;
}

template <class S, template <class> class Kind>
void try_one(bool options) {
  Heap<S> memory;
  Call call{};
  std::vector<int64_t> running;
  call.bytes = sizeof(S), call.threads = int(any(1, 3));
  call.steps = any(1, 12), call.batch = any(1, 14);
  running.push_back(call.batch);
  for (int64_t t = 1; t < call.steps; t++) running.push_back(any(1, running.back()));
  if (any(0, 1)) running.assign(call.steps, call.batch);
  for (int64_t n : running) call.rows += n;
  call.running = running.data();
  choose(Kind<S>::name, options, call);
  call.constants = memory.make(call.batch);
  // first all weights are said to be there, which tells how large they are
  S dummy = 0;
  bool bare = !strcmp(Kind<S>::name, "lstm") || !strcmp(Kind<S>::name, "rnn");
  for (int i = 0; i < kNorms; i++)
    if (options || i < 3 || !bare) call.weight[i] = &dummy;
  bool normed = options && even(Kind<S>(call));
  for (int i = kNorms; i < kWeights && normed; i++) call.weight[i] = &dummy;
  Kind<S> cell(call);
  cell.normalise_links();
  call.x = memory.make(call.rows * cell.inputs);
  for (int i = 0; i < kWeights; i++) call.weight[i] = nullptr;
  auto weigh = [&](int i, int64_t count) {
    call.weight[i] = memory.make(count), call.d_weight[i] = memory.make(count);
  };
  for (int i = 0; i < cell.link_count; i++) {
    const Link<S>& l = cell.links[i];
    int64_t rows = 0;
    for (int b = 0; b < l.blocks; b++) rows += l.to[b].size;
    weigh(l.weight, rows * l.source.size);
    if (l.bias >= 0) weigh(l.bias, rows);
  }
  for (int i = 0; i < cell.vector_count; i++)
    weigh(cell.vectors[i]->weight, cell.vectors[i]->size * cell.vectors[i]->rows);
  if (cell.noise && options) call.noise = memory.make(call.rows * cell.noise);
  call.output = memory.make(call.rows * cell.output.size);
  call.d_output = memory.make(call.rows * cell.output.size);
  for (int i = 0; i < cell.state_count; i++) {
    int64_t size = cell.states[i].size * cell.states[i].rows;
    call.state[i] = memory.make(call.batch * size), call.last[i] = memory.make(call.batch * size);
    call.every[i] = memory.make(call.rows * size), call.d_every[i] = memory.make(call.rows * size);
    call.d_last[i] = memory.make(call.batch * size);
    call.d_state[i] = memory.make(call.batch * size);
    if (options && cell.states[i].rows == 1) call.keep[i] = memory.make(call.rows * size);
  }
  call.d_x = memory.make(call.rows * cell.inputs);
  run<S, Kind>(call, Way::there);
  call.tape = memory.make(call.rows * run<S, Kind>(call, Way::nowhere));
  run<S, Kind>(call, Way::there);
  run<S, Kind>(call, Way::back);
}

// A step of the layers of a recurrent rule; the memory of states is wider than what is read of it.
template <class S>
void try_stack(bool options) {
  Heap<S> memory;
  Call call{};
  call.bytes = sizeof(S), call.threads = int(any(1, 3));
  call.batch = any(1, 3), call.rows = any(1, 400);
  int64_t units[] = {any(1, 24), options ? any(1, 24) : 0}, apart = call.rows + any(0, 9);
  int64_t last = options ? units[1] : units[0], inputs = 2;
  int64_t sizes[] = {inputs, units[0], units[1], apart, call.rows};
  for (int i = 0; i < 5; i++) call.size[i] = sizes[i];
  call.number[0] = 10;
  auto weigh = [&](int i, int64_t count) {
    call.weight[i] = memory.make(count), call.d_weight[i] = memory.make(count);
  };
  for (int i = 0; i < 1 + options; inputs = units[i++]) {
    weigh(3 * i, 4 * units[i] * inputs), weigh(3 * i + 1, 4 * units[i] * units[i]);
    weigh(3 * i + 2, 4 * units[i]);
    for (int s = 2 * i; s < 2 * i + 2; s++) {
      int64_t dense = call.batch * units[i] * call.rows;
      call.state[s] = memory.make(call.batch * units[i] * apart - (apart - call.rows));
      call.last[s] = memory.make(dense);
      if (any(0, 1)) call.d_last[s] = memory.make(dense);
      if (any(0, 1)) call.d_state[s] = memory.make(dense);
    }
  }
  if (last > 1 || any(0, 1)) weigh(6, last), weigh(7, 1);
  call.x = memory.make(call.batch * call.rows), call.output = memory.make(call.batch * call.rows);
  if (any(0, 1)) call.d_output = memory.make(call.batch * call.rows);
  run_stack<S>(call, Way::there);
  call.tape = memory.make(run_stack<S>(call, Way::nowhere));
  run_stack<S>(call, Way::there);
  run_stack<S>(call, Way::back);
}

// A matrix of rotations: any size in layers of neighbours, or a power of two.
template <class S>
void try_rotation(bool options) {
  Heap<S> memory;
  Call call{};
  call.bytes = sizeof(S), call.size[2] = options ? any(1, 6) : 0;
  int64_t n = call.size[1] = options ? any(2, 40) : int64_t(1) << any(1, 5);
  int64_t parts = any(1, 2), pairs = 0;
  for (int64_t i = 0; i < call.size[2]; i++) pairs += (n - i % 2) / 2;
  for (int64_t rest = n; !options && rest > 1; rest /= 2) pairs += n / 2;
  for (int i = 0; i < 2 * parts - 1; i++) {
    int64_t count = i < 2 ? pairs : n;
    call.weight[i] = memory.make(count), call.d_weight[i] = memory.make(count);
  }
  for (int i = 0; i < parts; i++) {
    call.last[i] = memory.make(parts * n * n);
    if (any(0, 2)) call.d_last[i] = memory.make(parts * n * n);
  }
  call.state[0] = call.last[0];
  run_rotation<S>(call, Way::there), run_rotation<S>(call, Way::back);
}

// A pass of a rule over a few tensors, empty ones and some for several threads among them.
template <class S>
void try_sweep(const Sweeper& rule) {
  Heap<S> memory;
  std::vector<Swept> tensors(any(1, 4));
  for (Swept& one : tensors) {
    one = {};
    one.size = any(0, 3) ? any(0, 99) : any(1, 60000);
    one.param = memory.make(one.size), one.grad = memory.make(one.size);
    for (void*& state : one.state) state = memory.make(one.size);
    S* squares = static_cast<S*>(one.state[2]);  // whose average is never negative
    for (int64_t i = 0; i < one.size; i++) squares[i] *= squares[i];
    for (void*& number : one.shared) number = memory.make(1);
    *static_cast<S*>(one.shared[0]) = S(any(0, 9));
    one.rates = memory.make(one.size), one.share = 1;
    one.sign = any(0, 1) ? 1 : -1, one.rate = 0.1, one.decay = 0.01, one.scale = 2;
  }
  Sweep sweep{sizeof(S), int32_t(any(1, 3)), int64_t(tensors.size()), tensors.data(), {}};
  for (double& number : sweep.number) number = 0.5;
  if (rule.run(sweep)) abort();
}

template <template <class> class... Kinds>
int try_all() {
  static_assert(sizeof...(Kinds) + 2 == sizeof(kernels) / sizeof(Kernel), "one is left out");
  int runs = 0;
  for (int i = 0; i < 40; i++) {
    ((try_one<float, Kinds>(i % 2), try_one<double, Kinds>(i % 2)), ...);
    try_stack<float>(i % 2), try_stack<double>(i % 2);
    try_rotation<float>(i % 2), try_rotation<double>(i % 2);
    for (const Sweeper& rule : sweepers) try_sweep<float>(rule), try_sweep<double>(rule), runs += 2;
    runs += 2 * int(sizeof...(Kinds)) + 4;
  }
  return runs;
}

}  // namespace

int main() {
  int runs = try_all<Clockwork, ComplexEurnn, DecayNet, DecayNetGru, Dntm, Eurnn, FastGrnn, Goru,
                     Gru, GruAfter, IhcGru, IhcLstm, IrcFastGrnn, IrcGru, IrcLstm, IrcSru, IrcTLstm,
                     Janet, Lstm, Lstm1997, Nru, Ntm, ReluNru, Rnn, Sru, StatRu, Tardis,
                     TLstm>();
  printf("%d runs\n", runs);
}
