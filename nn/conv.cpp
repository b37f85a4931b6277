#include "nn/conv.h"

#include <cmath>

#include "nn/init.h"

namespace isonorm::nn {
namespace {

// Uniform in +-1/sqrt(inputs of an output): the weight, or the bias.
Tensor draw_conv2d(bool is_weight, int64_t in, int64_t out, Size2 window, const Conv2dLayerOptions& o) {
  check(in > 0 && out > 0 && window.height > 0 && window.width > 0, "conv2d: sizes ", in, " -> ", out,
        " with a window of ", window, " must be positive");
  check(o.groups > 0 && in % o.groups == 0 && out % o.groups == 0, "conv2d: ", o.groups, " groups do not divide ", in,
        " channels of the input and ", out, " of the output");
  const int64_t own = in / o.groups;
  const double bound = 1 / std::sqrt(static_cast<double>(own * window.height * window.width));
  return init::uniform(is_weight ? Dims{out, window.height, window.width, own} : Dims{out}, -bound, bound);
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, Size2 window, Conv2dLayerOptions o)
    : weight(add_parameter("weight", draw_conv2d(true, in, out, window, o))),
      bias(add_parameter("bias", o.bias ? draw_conv2d(false, in, out, window, o) : Tensor())),
      in_(in),
      out_(out),
      window_(window),
      options_(o) {}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight(), bias(), options_); }

}  // namespace isonorm::nn
