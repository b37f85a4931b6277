// The end of a residual branch: the linear map whose output is added to the stream, with dropout, layer scale and
// stochastic depth.
#pragma once

#include <functional>

#include "nn/linear.h"

namespace isonorm::nn {

// Order of dropout, layer scale and the map of a stream that centres its writers (streams/parametrize.h). The map must
// be last: the output of P W is zero-mean, but a masked or scaled one is not, and P mask P W is not P mask W either.
// The two other orders exist to show that they are wrong (tests/streams/switches_test.cpp).
enum class Recentring { last, first, first_and_last };

struct BranchOptions {
  double dropout = 0;           // probability that training sets an entry of the branch to 0 (Srivastava et al., 2014)
  double stochastic_depth = 0;  // probability that training drops the whole branch of a sample (1603.09382)
  double layer_scale = 0;       // initial value of a learned factor per entry (2103.17239); 0: no factors
  Recentring recentring = Recentring::last;  // the other orders are wrong, for experiments
};

// A linear map that ends a branch: x [batch, ..., in] -> [batch, ..., out], to be added to the stream:
//   keep * mask * scale * (x W^T + b) / ((1 - dropout) (1 - stochastic_depth))
// mask has one value per entry, keep one per sample. Both are drawn from the default generator, so runs in lockstep
// draw the same values if every step sets the same generator state. Throws if a probability is not in [0, 1), or if
// layer_scale is not finite.
class BranchOutput : public Linear {
 public:
  BranchOutput(int64_t in, int64_t out, bool bias, BranchOptions options);
  // forward() for a layer whose product is computed elsewhere: product(W, b) gives x W^T + b. rows: the dtype of x.
  using Product = std::function<Tensor(const Tensor& weight, const Tensor& bias)>;
  Tensor ending(DType rows, const Product& product) const;

  const BranchOptions& options() const { return options_; }
  BranchOutput rebuild() const { return BranchOutput(in(), out(), bias.defined(), options_); }

  Parameter& scale;  // [out]; undefined without layer scale

  // Maps the branch's output to the coordinates of a residual stream, along dimension `dim` of size `out`. It is
  // applied to weight and bias, or, with dropout in training, to the masked output.
  struct Entry {
    virtual ~Entry() = default;
    virtual Tensor operator()(const Tensor& x, int dim) const = 0;
    virtual bool centres() const = 0;  // if true, options().recentring applies to this map
  };
  void enter_by(std::shared_ptr<const Entry> entry);
  const Entry* entry() const { return entry_.get(); }
  // For a layer that sees only a part of its input's entries: given x W^T of this part, sum() returns the product over
  // all entries. The bias is added once, afterwards.
  void sum_by(std::function<Tensor(const Tensor& part)> sum) { sum_ = std::move(sum); }
  // True if weight or bias has a parametrisation that this class did not set.
  bool parametrized_elsewhere() const;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  Tensor output(DType rows, const Product& product) const;  // without stochastic depth

  BranchOptions options_;
  Recentring order_ = Recentring::last;
  std::shared_ptr<const Entry> entry_;
  std::function<Tensor(const Tensor&)> sum_;
};

}  // namespace isonorm::nn
