// All cells, for the instruction set that this file is compiled for.
#include "cells/lstm.hpp"
#include "driver.hpp"

#define ATTRACTOR_TEXT_(x) #x
#define ATTRACTOR_TEXT(x) ATTRACTOR_TEXT_(x)

namespace attractor::ATTRACTOR_PATH {
namespace {

template <template <class> class Kind>
constexpr Kernel kernel() {
  return {Kind<float>::name,
          [](const Call& c) {
            return c.bytes == 4 ? Run<float, Kind>::tape_width(c) : Run<double, Kind>::tape_width(c);
          },
          [](const Call& c) {
            c.bytes == 4 ? Run<float, Kind>::forward(c) : Run<double, Kind>::forward(c);
          },
          [](const Call& c) {
            c.bytes == 4 ? Run<float, Kind>::backward(c) : Run<double, Kind>::backward(c);
          }};
}

const Kernel kernels[] = {kernel<Lstm>()};

}  // namespace

extern const Path path;
const Path path{ATTRACTOR_TEXT(ATTRACTOR_PATH), kernels, sizeof(kernels) / sizeof(Kernel)};

}  // namespace attractor::ATTRACTOR_PATH
