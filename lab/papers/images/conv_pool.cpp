#include "lab/papers/images/conv_pool.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/images.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "nn/init.h"
#include "nn/parameter_free.h"
#include "nn/weight_norm.h"

namespace isonorm::papers {

using namespace nn;

const char* name_of(ConvNorm norm) {
  constexpr const char* names[] = {"none", "batch", "weight", "layer", "instance", "rms", "prms"};
  return names[static_cast<size_t>(norm)];
}

namespace {

Tensor draw_weight(int64_t in, int64_t out, int64_t window) {
  const int64_t inputs = in * (window ? window * window : 1);
  const Dims shape = window ? Dims{out, window, window, in} : Dims{out, in};
  return init::normal(shape, 0, std::sqrt(2 / static_cast<double>(inputs)));
}

}  // namespace

NormedLayer::NormedLayer(ConvNorm norm, int64_t in, int64_t out, int64_t window, int64_t padding)
    : norm_(norm),
      padding_(padding),
      weight_(add_parameter("weight", draw_weight(in, out, window))),
      gain_(add_parameter("gain", norm == ConvNorm::none || norm == ConvNorm::batch ? Tensor() : ones({out}))),
      bias_(add_parameter("bias", norm == ConvNorm::batch ? Tensor() : zeros({out}))) {
  if (norm == ConvNorm::batch) batch_ = &add("batch", BatchNorm(out));
}

Tensor NormedLayer::product(const Tensor& x, const Tensor& gain, const Tensor& offset) const {
  const Tensor w = gain.defined() ? weight_norm(weight_, gain) : weight_;
  return w.rank() == 4 ? conv2d(x, w, offset, {.padding = padding_}) : linear(x, w, offset);
}

Tensor NormedLayer::forward(const Tensor& x) {
  if (norm_ == ConvNorm::none) return product(x, {}, bias_);
  if (norm_ == ConvNorm::weight) return product(x, gain_, bias_);
  const Tensor y = product(x, {}, {});
  if (batch_) return (*batch_)(y);
  const bool dense = y.rank() == 2, by_place = norm_ != ConvNorm::layer && !dense;
  GroupNormOptions o;
  if (norm_ == ConvNorm::rms || norm_ == ConvNorm::prms) o = {.kind = NormKind::rms, .eps = 1e-6};  // RMSNorm's README
  if (norm_ != ConvNorm::prms) return group_norm(y, by_place ? y.size(-1) : 1, gain_, bias_, o);
  o.p = 0.125;
  // In a dense layer the normalized positions are the outputs.
  return dense ? rms_norm(y, gain_, bias_, {.eps = o.eps, .p = o.p}) : group_norm(y, y.size(-1), gain_, bias_, o);
}

void NormedLayer::initialise(const Tensor& x) {
  if (norm_ != ConvNorm::weight) return;
  fill(gain_, 1);
  initialise_weight_norm(gain_, bias_, product(x, gain_, {}));
}

ConvPoolCnn::ConvPoolCnn(const ConvPoolOptions& o) : options(o) {
  check(o.image >= 16, "conv_pool: images of ", o.image, " pixels a side, expected 16 at least");
  check(o.channels > 0 && o.classes > 0 && o.width > 0, "conv_pool: ", o.channels, " channels, ", o.classes,
        " classes and a width of ", o.width, " must be positive");
  between_.push_back(&add("noise", GaussianNoise(o.noise)));
  const auto layer = [&](int64_t in, int64_t out, int64_t window, int64_t padding) {
    layers_.push_back(&add(text("layer", layers_.size()), NormedLayer(o.norm, in, out, window, padding)));
  };
  for (int i = 0; i < 3; ++i) layer(i ? o.width : o.channels, o.width, 3, 1);
  between_.push_back(&add("dropout0", Dropout(o.dropout)));
  for (int i = 0; i < 3; ++i) layer(i ? 2 * o.width : o.width, 2 * o.width, 3, 1);
  between_.push_back(&add("dropout1", Dropout(o.dropout)));
  for (const int64_t window : {3, 1, 1}) layer(2 * o.width, 2 * o.width, window, 0);
  layer(2 * o.width, o.classes, 0, 0);
}

Tensor ConvPoolCnn::run(const Tensor& images, bool initialising) {
  check(images.rank() == 4 && images.size(1) == options.image && images.size(2) == options.image &&
            images.size(3) == options.channels,
        "conv_pool: images ", images.shape(), ", expected [n, ", options.image, ", ", options.image, ", ",
        options.channels, "]");
  const auto passed = [&](size_t i, const Tensor& x) { return initialising ? x : (*between_[i])(x); };
  Tensor x = passed(0, images);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i + 1 == layers_.size()) x = mean(x, {1, 2});
    if (initialising) layers_[i]->initialise(x);
    x = (*layers_[i])(x);
    if (i + 1 < layers_.size()) x = leaky_relu(x, 0.1);
    if (i == 2 || i == 5) x = passed(i / 3 + 1, max_pool2d(x, 2));
  }
  return x;
}

Tensor ConvPoolCnn::forward(const Tensor& images) { return run(images, false); }

void ConvPoolCnn::initialise(const Tensor& images) {
  const NoGrad no_grad;
  if (options.norm == ConvNorm::weight) run(images, true);
}

}  // namespace isonorm::papers
