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

// A weight [d, in] or bias [d] of d entries as it ends a branch, before it is mapped.
Tensor scaled(const Tensor& stored, const Tensor& scale, Recentring order) {
  const Tensor x = order == Recentring::first_and_last ? recentre(stored, 0) : stored;
  if (!scale.defined() || order == Recentring::first) return x;
  return x * (x.rank() == 1 ? scale : unsqueeze(scale, 1));
}

// The same, mapped.
class Ends : public Parametrisation {
 public:
  Ends(const Stream& stream, const Tensor& scale, Recentring order) : stream_(stream), scale_(scale), order_(order) {}
  Tensor operator()(const Tensor& stored) const override { return stream_.write(scaled(stored, scale_, order_), 0); }
  std::vector<Tensor> reads() const override {
    return scale_.defined() ? std::vector<Tensor>{scale_} : std::vector<Tensor>();
  }
  Role role() const override { return Role::writer; }

 private:
  Stream stream_;
  Tensor scale_;
  Recentring order_;
};

}  // namespace

BranchOutput::BranchOutput(int64_t in, const Stream& stream, bool bias, BranchOptions o)
    : Linear(in, stream.parameter_width(), {.bias = bias}), options_(o), stream_(stream) {
  check(o.dropout >= 0 && o.dropout < 1, "branch: dropout ", o.dropout, " is not in [0, 1)");
  check(o.stochastic_depth >= 0 && o.stochastic_depth < 1, "branch: stochastic depth ", o.stochastic_depth,
        " is not in [0, 1)");
  check(std::isfinite(o.layer_scale), "branch: layer scale ", o.layer_scale, " is not finite");
  check((o.dropout == 0 && o.layer_scale == 0) || !stream.centres() || stream.storage() == StreamStorage::raw,
        "branch: dropout ", o.dropout, " and layer scale ", o.layer_scale, " act on the ", stream.width(),
        " entries of a raw branch, which mapped storage of ", name_of(stream.form()),
        " does not hold; use raw storage");
  if (o.layer_scale != 0) scale = add_parameter("scale", full({stream.width()}, o.layer_scale));
  const auto ends = std::make_shared<Ends>(stream, scale, recentring());
  weight.parametrize(ends);
  if (bias) this->bias.parametrize(ends);
}

// In a form that does not centre, all orders are one.
Recentring BranchOutput::recentring() const { return stream_.centres() ? options_.recentring : Recentring::last; }

Tensor BranchOutput::output(const Product& product) const {
  const bool drops = training() && options_.dropout > 0;
  if (recentring() == Recentring::first) {
    Tensor y = product(weight(), bias());
    if (scale.defined()) y = times(y, scale);
    if (!drops) return y;
    Dims shape = y.shape();  // the mask has d entries in every form, so that all draw the same
    shape[shape.rank - 1] = stream_.width();
    return times(y, dropout(ones(shape, y.options()), options_.dropout));
  }
  if (!drops) return product(weight(), bias());
  const Recentring order = recentring();
  const Tensor y = product(scaled(weight, scale, order), bias.defined() ? scaled(bias, scale, order) : Tensor());
  return stream_.write(dropout(y, options_.dropout), -1);
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
