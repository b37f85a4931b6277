#include "nn/conv.h"

#include <cmath>

#include "nn/init.h"

namespace isonorm::nn {
namespace {

// Uniform in +-1/sqrt(n), n the entries of weight[0]: the initial weight of this shape, or its bias.
Tensor draw_beside(const Dims& weight, const Dims& shape) {
  const double bound = 1 / std::sqrt(static_cast<double>(numel(weight) / weight[0]));
  return init::uniform(shape, -bound, bound);
}

void check_sizes(const char* op, int64_t in, int64_t out, Size2 window, int64_t groups) {
  check(in > 0 && out > 0 && window.height > 0 && window.width > 0, op, ": sizes ", in, " -> ", out,
        " with a window of ", window, " must be positive");
  check(groups > 0 && in % groups == 0 && out % groups == 0, op, ": ", groups, " groups do not divide ", in,
        " channels of the input and ", out, " of the output");
}
Dims conv2d_shape(int64_t in, int64_t out, Size2 window, int64_t groups) {
  check_sizes("conv2d", in, out, window, groups);
  return {out, window.height, window.width, in / groups};
}
Dims conv1d_shape(int64_t in, int64_t out, int64_t window, int64_t groups) {
  check_sizes("conv1d", in, out, {1, window}, groups);
  return {out, window, in / groups};
}
Dims conv_transpose2d_shape(int64_t in, int64_t out, Size2 window, int64_t groups) {
  check_sizes("conv_transpose2d", in, out, window, groups);
  return {in, window.height, window.width, out / groups};
}
Tensor draw_weight(const Dims& weight) { return draw_beside(weight, weight); }
Tensor draw_bias(const Tensor& weight, int64_t out, bool wanted) {
  return wanted ? draw_beside(weight.shape(), {out}) : Tensor();
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, Size2 window, Conv2dLayerOptions o)
    : weight(add_parameter("weight", draw_weight(conv2d_shape(in, out, window, o.groups)))),
      bias(add_parameter("bias", draw_bias(weight, out, o.bias))),
      in_(in),
      out_(out),
      window_(window),
      options_(o) {}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight(), bias(), options_); }

Conv1d::Conv1d(int64_t in, int64_t out, int64_t window, Conv1dLayerOptions o)
    : weight(add_parameter("weight", draw_weight(conv1d_shape(in, out, window, o.groups)))),
      bias(add_parameter("bias", draw_bias(weight, out, o.bias))),
      in_(in),
      out_(out),
      window_(window),
      options_(o) {}

Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight(), bias(), options_); }

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, Size2 window, ConvTranspose2dLayerOptions o)
    : weight(add_parameter("weight", draw_weight(conv_transpose2d_shape(in, out, window, o.groups)))),
      bias(add_parameter("bias", draw_bias(weight, out, o.bias))),
      in_(in),
      out_(out),
      window_(window),
      options_(o) {}

Tensor ConvTranspose2d::forward(const Tensor& x) { return conv_transpose2d(x, weight(), bias(), options_); }

}  // namespace isonorm::nn
