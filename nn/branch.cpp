#include "nn/branch.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {
namespace {

// y times `per_entry` [..., d] or its leading entries where y is stored in d - 1.
Tensor times(const Tensor& y, const Tensor& per_entry) {
  return y * cast(narrow(per_entry, -1, 0, y.size(-1)), y.dtype());
}

}  // namespace

BranchOutput::BranchOutput(int64_t in, const Stream& stream, bool bias, BranchOptions o)
    : Linear(in, stream.width(), {.bias = bias, .writes = &stream}), options_(o), stream_(stream) {
  check(o.dropout >= 0 && o.dropout < 1, "branch: dropout ", o.dropout, " is not in [0, 1)");
  check(o.stochastic_depth >= 0 && o.stochastic_depth < 1, "branch: stochastic depth ", o.stochastic_depth,
        " is not in [0, 1)");
  check(std::isfinite(o.layer_scale), "branch: layer scale ", o.layer_scale, " is not finite");
  check((o.dropout == 0 && o.layer_scale == 0) || !stream.centres() || stream.storage() == StreamStorage::raw,
        "branch: dropout ", o.dropout, " and layer scale ", o.layer_scale, " act on the ", stream.width(),
        " entries of a raw branch, which mapped storage of ", name_of(stream.form()),
        " does not hold; use raw storage");
  if (o.layer_scale != 0) scale = add_parameter("scale", full({stream.width()}, o.layer_scale));
}

Mapped BranchOutput::scaled() const {
  Tensor w = weight, b = bias;
  if (recentring() == Recentring::first_and_last) {
    w = recentre(w, 0);
    if (b.defined()) b = recentre(b, 0);
  }
  if (scale.defined() && recentring() != Recentring::first) {
    w = w * unsqueeze(scale, 1);
    if (b.defined()) b = b * scale;
  }
  return {w, b};
}

Mapped BranchOutput::map() const {
  const auto [w, b] = scaled();
  return {stream_.write(w, 0), b.defined() ? stream_.write(b, 0) : b};
}

Tensor BranchOutput::output(const Product& product) const {
  const bool drops = training() && options_.dropout > 0;
  if (recentring() == Recentring::first) {
    const auto [w, b] = mapped();
    Tensor y = product(w, b);
    if (scale.defined()) y = times(y, scale);
    if (!drops) return y;
    Dims shape = y.shape();  // the mask has d entries in every form, so that all draw the same
    shape[shape.rank - 1] = stream_.width();
    return times(y, dropout(ones(shape, y.options()), options_.dropout));
  }
  const auto [w, b] = drops ? scaled() : mapped();
  const Tensor y = product(w, b);
  return drops ? stream_.write(dropout(y, options_.dropout), -1) : y;
}

Tensor BranchOutput::forward(const Tensor& x) {
  return ending([&](const Tensor& w, const Tensor& b) { return linear(x, w, b); });
}

Tensor BranchOutput::ending(const Product& product) const {
  const Tensor y = output(product);
  if (!training() || options_.stochastic_depth == 0) return y;
  Dims samples = y.shape();
  for (int i = 1; i < samples.rank; ++i) samples[i] = 1;
  return y * dropout(ones(samples, y.options()), options_.stochastic_depth);
}

}  // namespace isonorm::nn
