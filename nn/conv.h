// Convolution and pooling of images [n, height, width, channels].
#pragma once

#include "autograd/ops/conv.h"
#include "autograd/ops/pool.h"
#include "nn/module.h"

namespace isonorm::nn {

struct Conv2dLayerOptions : Conv2dOptions {
  bool bias = true;
};

// conv2d() with weight [out, window height, window width, in / groups] and bias [out], both uniform in +-1/sqrt(inputs of an output), as
// PyTorch's. Throws where sizes or groups do not fit.
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, Size2 window, Conv2dLayerOptions options = {});

  Parameter &weight, &bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Conv2dOptions options_;
};

// max_pool2d() and avg_pool2d(), by the same options.
template <Tensor (*F)(const Tensor&, Size2, Pool2dOptions)> class Pool2d : public Module {
 public:
  explicit Pool2d(Size2 window, Pool2dOptions options = {}) : window_(window), options_(options) {}

 protected:
  Tensor forward(const Tensor& x) override { return F(x, window_, options_); }

 private:
  Size2 window_;
  Pool2dOptions options_;
};
using MaxPool2d = Pool2d<max_pool2d>;
using AvgPool2d = Pool2d<avg_pool2d>;

}  // namespace isonorm::nn
