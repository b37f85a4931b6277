#include "nn/conv.h"

#include <cmath>

#include "nn/init.h"

namespace isonorm::nn {

Conv2d::Conv2d(int64_t in, int64_t out, Size2 window, Conv2dLayerOptions o)
    : in_(in), out_(out), window_(window), options_(o) {
  check(in > 0 && out > 0 && window.height > 0 && window.width > 0, "conv2d: sizes ", in, " -> ", out,
        " with a window of ", window, " must be positive");
  check(o.groups > 0 && in % o.groups == 0 && out % o.groups == 0, "conv2d: ", o.groups, " groups do not divide ", in,
        " channels of the input and ", out, " of the output");
  const int64_t own = in / o.groups;
  const double bound = 1 / std::sqrt(static_cast<double>(own * window.height * window.width));
  weight = add_parameter("weight", init::uniform({out, window.height, window.width, own}, -bound, bound));
  if (o.bias) bias = add_parameter("bias", init::uniform({out}, -bound, bound));
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight(), bias(), options_); }

}  // namespace isonorm::nn
