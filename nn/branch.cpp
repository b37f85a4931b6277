#include "nn/branch.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {
namespace {

// y times `per_entry` [..., d], or times its leading d - 1 entries if y has d - 1 (a stream that stores one entry
// less).
Tensor times(const Tensor& y, const Tensor& per_entry) {
  return y * narrow(per_entry, -1, 0, y.size(-1)).to(y.dtype());
}

// A weight [d, in] or bias [d] times the layer scale, and recentred before, as `order` says. It is not yet mapped to
// the stream.
Tensor scaled(const Tensor& stored, const Tensor& scale, Recentring order) {
  const Tensor x = order == Recentring::first_and_last ? recentre(stored, 0) : stored;
  if (!scale.defined() || order == Recentring::first) return x;
  return x * (x.rank() == 1 ? scale : unsqueeze(scale, 1));
}

// Parametrisation of weight and bias: scaled(), then the map to the stream's coordinates, if there is one.
class Ends : public Parametrisation {
 public:
  Ends(const Tensor& scale, Recentring order, std::shared_ptr<const BranchOutput::Entry> entry)
      : scale_(scale), order_(order), entry_(std::move(entry)) {}
  Tensor operator()(const Tensor& stored) const override {
    const Tensor x = scaled(stored, scale_, order_);
    return entry_ ? (*entry_)(x, 0) : x;
  }
  std::vector<Tensor> reads() const override {
    return scale_.defined() ? std::vector<Tensor>{scale_} : std::vector<Tensor>();
  }

 private:
  Tensor scale_;
  Recentring order_;
  std::shared_ptr<const BranchOutput::Entry> entry_;
};

}  // namespace

BranchOutput::BranchOutput(int64_t in, int64_t out, bool bias, BranchOptions o)
    : Linear(in, out, {.bias = bias}),
      scale(add_parameter("scale", o.layer_scale == 0 ? Tensor() : full({out}, o.layer_scale))),
      options_(o) {
  check(o.dropout >= 0 && o.dropout < 1, "branch: dropout ", o.dropout, " is not in [0, 1)");
  check(o.stochastic_depth >= 0 && o.stochastic_depth < 1, "branch: stochastic depth ", o.stochastic_depth,
        " is not in [0, 1)");
  check(std::isfinite(o.layer_scale), "branch: layer scale ", o.layer_scale, " is not finite");
  if (scale.defined()) enter_by(nullptr);
}

void BranchOutput::enter_by(std::shared_ptr<const Entry> entry) {
  entry_ = std::move(entry);
  order_ = entry_ && entry_->centres() ? options_.recentring : Recentring::last;
  const auto ends = std::make_shared<Ends>(scale, order_, entry_);
  weight.parametrize(ends);
  if (bias.defined()) bias.parametrize(ends);
}

bool BranchOutput::parametrized_elsewhere() const {
  const auto elsewhere = [](const Parameter& p) {
    return p.parametrisation() && !dynamic_cast<const Ends*>(p.parametrisation());
  };
  return elsewhere(weight) || elsewhere(bias);
}

Tensor BranchOutput::output(DType rows, const Product& product) const {
  const bool drops = training() && options_.dropout > 0;
  if (order_ == Recentring::first) {
    Tensor y = product(weight(rows), bias(rows));
    if (scale.defined()) y = times(y, scale);
    if (!drops) return y;
    Dims shape = y.shape();  // the mask has d entries in every form, so that all forms draw the same values
    shape[shape.rank - 1] = weight.whole().size(0);
    return times(y, dropout(ones(shape, y.options()), options_.dropout));
  }
  if (!drops) return product(weight(rows), bias(rows));
  const Tensor y =
      product(scaled(weight.whole(), scale, order_), bias.defined() ? scaled(bias, scale, order_) : Tensor());
  const Tensor masked = dropout(y, options_.dropout);
  return entry_ ? (*entry_)(masked, -1) : masked;
}

Tensor BranchOutput::forward(const Tensor& x) {
  return ending(x.dtype(), [&](const Tensor& w, const Tensor& b) { return linear(x, w, b); });
}

Tensor BranchOutput::ending(DType rows, const Product& product) const {
  const auto whole = [&](const Tensor& w, const Tensor& b) {
    const Tensor y = sum_(product(w, {}));
    return b.defined() ? y + b.to(y.dtype()) : y;
  };
  const Tensor y = sum_ ? output(rows, whole) : output(rows, product);
  if (!training() || options_.stochastic_depth == 0) return y;
  Dims samples = y.shape();
  for (int i = 1; i < samples.rank; ++i) samples[i] = 1;
  return y * dropout(ones(samples, y.options()), options_.stochastic_depth);
}

}  // namespace isonorm::nn
