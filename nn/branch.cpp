#include "nn/branch.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {
Tensor LayerScale::operator()(const Tensor& x) const { return x * (x.rank() == 1 ? scale_ : unsqueeze(scale_, 1)); }

BranchOutput::BranchOutput(int64_t in, int64_t out, bool bias, BranchOptions o)
    : Linear(in, out, {.bias = bias}),
      scale(add_parameter("scale", o.layer_scale == 0 ? Tensor() : full({out}, o.layer_scale))),
      options_(o) {
  check(o.dropout >= 0 && o.dropout < 1, "branch: dropout ", o.dropout, " is not in [0, 1)");
  check(o.stochastic_depth >= 0 && o.stochastic_depth < 1, "branch: stochastic depth ", o.stochastic_depth,
        " is not in [0, 1)");
  check(std::isfinite(o.layer_scale), "branch: layer scale ", o.layer_scale, " is not finite");
  if (!scale.defined()) return;
  const auto scaled = std::make_shared<LayerScale>(scale);
  weight.parametrize(scaled);
  if (bias) this->bias.parametrize(scaled);
}

Tensor BranchOutput::forward(const Tensor& x) {
  const auto [w, b] = operands(x.dtype());
  return finish(linear(x, w, b));
}

WeightAndBias BranchOutput::operands(DType rows) const {
  WeightAndBias p;
  const size_t maps = maps_after_dropout();
  p.bias = sum_ ? Tensor() : drops() ? bias.before_output_maps(maps) : bias(rows);
  p.weight = drops() ? weight.before_output_maps(maps) : weight(rows);
  return p;
}

Tensor BranchOutput::finish(const Tensor& product) const {
  Tensor y = product;
  if (sum_) {
    y = sum_(y);
    if (const Tensor b = bias.before_output_maps(maps_after_dropout()); b.defined()) y = y + b.to(y.dtype());
  }
  if (drops()) y = weight.map_output(dropout(y, options_.dropout), maps_after_dropout());
  if (!training() || options_.stochastic_depth == 0) return y;
  Dims samples = y.shape();
  for (int i = 1; i < samples.rank; ++i) samples[i] = 1;
  return y * dropout(ones(samples, y.options()), options_.stochastic_depth);
}

}  // namespace isonorm::nn
