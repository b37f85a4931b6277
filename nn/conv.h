// Convolution, pooling and resizing of images [n, height, width, channels], and convolution of sequences.
#pragma once

#include "autograd/ops/images.h"
#include "nn/module.h"

namespace isonorm::nn {

// Conv2dOptions, and whether there is a bias.
struct Conv2dLayerOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  bool bias = true;

  operator Conv2dOptions() const { return {stride, padding, dilation, groups}; }
};

// conv2d() with weight [out, window height, window width, in / groups] and bias [out], both uniform in +-1/sqrt(inputs
// of an output), as in PyTorch. Throws if sizes or groups do not fit. PyTorch's weight is [out, in / groups, height,
// width]: nn::from_torch() converts it.
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, Size2 window, Conv2dLayerOptions options = {});

  Conv2d rebuild() const { return Conv2d(in_, out_, window_, options_); }

  Parameter &weight, &bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int64_t in_, out_;
  Size2 window_;
  Conv2dLayerOptions options_;
};

// Conv1dOptions, and whether there is a bias.
struct Conv1dLayerOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;

  operator Conv1dOptions() const { return {stride, padding, dilation, groups}; }
};

// conv1d() of sequences [n, length, in] with weight [out, window, in / groups] and bias [out], which are initialized as
// in Conv2d. Throws if sizes or groups do not fit.
class Conv1d : public Module {
 public:
  Conv1d(int64_t in, int64_t out, int64_t window, Conv1dLayerOptions options = {});

  Conv1d rebuild() const { return Conv1d(in_, out_, window_, options_); }

  Parameter &weight, &bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int64_t in_, out_, window_;
  Conv1dLayerOptions options_;
};

// ConvTranspose2dOptions, and whether there is a bias.
struct ConvTranspose2dLayerOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  bool bias = true;

  operator ConvTranspose2dOptions() const { return {stride, padding, output_padding, dilation, groups}; }
};

// conv_transpose2d() with weight [in, window height, window width, out / groups] and bias [out], both uniform in
// +-1/sqrt(window height window width out / groups), as PyTorch's. Throws if sizes or groups do not fit.
class ConvTranspose2d : public Module {
 public:
  ConvTranspose2d(int64_t in, int64_t out, Size2 window, ConvTranspose2dLayerOptions options = {});

  ConvTranspose2d rebuild() const { return ConvTranspose2d(in_, out_, window_, options_); }

  Parameter &weight, &bias;  // bias is undefined without

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int64_t in_, out_;
  Size2 window_;
  ConvTranspose2dLayerOptions options_;
};

// max_pool2d() and avg_pool2d(), by the same options.
template <Tensor (*F)(const Tensor&, Size2, Pool2dOptions)> class Pool2d : public Module {
 public:
  explicit Pool2d(Size2 window, Pool2dOptions options = {}) : window_(window), options_(options) {}

  Pool2d rebuild() const { return Pool2d(window_, options_); }

 protected:
  Tensor forward(const Tensor& x) override { return F(x, window_, options_); }

 private:
  Size2 window_;
  Pool2dOptions options_;
};
using MaxPool2d = Pool2d<max_pool2d>;
using AvgPool2d = Pool2d<avg_pool2d>;

// adaptive_avg_pool2d() to images of this size.
class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 size) : size_(size) {}

  AdaptiveAvgPool2d rebuild() const { return AdaptiveAvgPool2d(size_); }

 protected:
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, size_); }

 private:
  Size2 size_;
};

// interpolate(): nn::Upsample({.scale_factor = 2}).
class Upsample : public Module {
 public:
  explicit Upsample(InterpolateOptions options) : options(options) {}

  const InterpolateOptions options;

 protected:
  Tensor forward(const Tensor& x) override { return interpolate(x, options); }
};

}  // namespace isonorm::nn
