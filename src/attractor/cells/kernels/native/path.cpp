// All cells, for the instruction set that this file is compiled for.
#include "back.hpp"
#include "cells/connected.hpp"
#include "cells/decaynet.hpp"
#include "cells/dntm.hpp"
#include "cells/fastgrnn.hpp"
#include "cells/gru.hpp"
#include "cells/lstm.hpp"
#include "cells/nru.hpp"
#include "cells/ntm.hpp"
#include "cells/rotations.hpp"
#include "cells/simple.hpp"
#include "cells/sru.hpp"
#include "cells/stat_ru.hpp"
#include "cells/tardis.hpp"
#include "optimisers/rules.hpp"
#include "optimisers/stack_back.hpp"
#include "rotation.hpp"
#include "there.hpp"

#define ATTRACTOR_TEXT_(x) #x
#define ATTRACTOR_TEXT(x) ATTRACTOR_TEXT_(x)

namespace attractor::ATTRACTOR_PATH {
namespace {

// Whether to go there or back, or nowhere; what a record is wide.
template <class S, template <class> class Kind>
int64_t run(const Call& call, Way way) {
  Kind<S> cell(call);
  cell.normalise_links();
  if (way == Way::there) Run<S>::forward(call, cell);
  if (way == Way::back) Run<S>::backward(call, cell);
  return Run<S>::record_width(call, cell);
}

template <template <class> class Kind>
constexpr Kernel kernel() {
  return {Kind<float>::name, [](const Call& call, Way way) {
            return call.bytes == 4 ? run<float, Kind>(call, way) : run<double, Kind>(call, way);
          }};
}

// The layers of a recurrent rule; `batch` counts learners; it returns all numbers of the tape.
template <class S>
int64_t run_stack(const Call& call, Way way) {
  Stack<S> stack(call);
  if (way == Way::there) stack.forward();
  if (way == Way::back) stack.backward();
  return stack.tape_size();
}

constexpr Kernel kStack{"stack", [](const Call& call, Way way) {
                          return call.bytes == 4 ? run_stack<float>(call, way)
                                                 : run_stack<double>(call, way);
                        }};

template <class S>
int64_t run_rotation(const Call& call, Way way) {
  Rotation<S> rotation(call);
  if (way == Way::there) rotation.forward();
  if (way == Way::back) rotation.backward();
  return 0;
}

constexpr Kernel kRotation{"rotation", [](const Call& call, Way way) {
                             return call.bytes == 4 ? run_rotation<float>(call, way)
                                                    : run_rotation<double>(call, way);
                           }};

const Kernel kernels[] = {
    kernel<Clockwork>(),    kernel<DecayNetGru>(), kernel<Lstm1997>(),
    kernel<ComplexEurnn>(), kernel<DecayNet>(), kernel<Dntm>(),    kernel<Eurnn>(),   kernel<FastGrnn>(),
    kernel<Goru>(),         kernel<Gru>(),      kernel<GruAfter>(), kernel<IhcGru>(),
    kernel<IhcLstm>(),      kernel<IrcFastGrnn>(), kernel<IrcGru>(), kernel<IrcLstm>(),
    kernel<IrcSru>(),       kernel<IrcTLstm>(), kernel<Janet>(),   kernel<Lstm>(),
    kernel<Nru>(),          kernel<Ntm>(),      kernel<Rnn>(),      kernel<Sru>(),     kernel<StatRu>(),
    kernel<Tardis>(),   kernel<TLstm>(),    kernel<ReluNru>(),
    kStack,                 kRotation};

const Sweeper sweepers[] = {sweeper<AnytimeRule>(), sweeper<MetaSgd>(), sweeper<PacerRule>()};

}  // namespace

extern const Path path;
const Path path{ATTRACTOR_TEXT(ATTRACTOR_PATH), kernels, sizeof(kernels) / sizeof(Kernel),
                sweepers, sizeof(sweepers) / sizeof(Sweeper)};

}  // namespace attractor::ATTRACTOR_PATH
