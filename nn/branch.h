// The output layer of a residual branch: a linear map with dropout, layer scale and stochastic depth.
#pragma once

#include <functional>

#include "nn/linear.h"

namespace isonorm::nn {

struct BranchOptions {
  double dropout = 0;           // probability that training sets an entry of the branch to 0 (Srivastava et al., 2014)
  double stochastic_depth = 0;  // probability that training drops the whole branch of a sample (1603.09382)
  double layer_scale = 0;       // initial value of a learned factor per entry (2103.17239); 0: no factors
};

// The parametrisation of a weight [out, in] or bias [out] by learned factors [out]: x -> diag(scale) x.
class LayerScale : public Parametrisation {
 public:
  explicit LayerScale(const Tensor& scale) : scale_(scale) {}
  Tensor operator()(const Tensor& x) const override;
  std::vector<Tensor> reads() const override { return {scale_}; }
  bool is_part_of_model() const override { return true; }

 private:
  Tensor scale_;
};

// The output layer of a branch, x [batch, ..., in] -> [batch, ..., out]:
//   keep * mask * scale * (x W^T + b) / ((1 - dropout) (1 - stochastic_depth))
// mask has one value per entry, keep one per sample. Both are drawn from the default generator, so runs in lockstep
// draw the same values if every step sets the same generator state. The layer scale is the first parametrisation of
// weight and bias. Output maps with which the parametrisations of weight and bias both end
// (Parametrisation::is_output_map) act after the mask. Throws if a probability is not in [0, 1), or if layer_scale is
// not finite.
class BranchOutput : public Linear {
 public:
  BranchOutput(int64_t in, int64_t out, bool bias, BranchOptions options);

  // The two halves of forward(), for a product that a fused op computes: forward(x) is finish(linear(x, weight, bias))
  // with the operands for rows of this dtype.
  WeightAndBias operands(DType rows) const;
  Tensor finish(const Tensor& product) const;

  const BranchOptions& options() const { return options_; }
  BranchOutput rebuild() const { return BranchOutput(in(), out(), bias.defined(), options_); }

  Parameter& scale;  // [out]; undefined without layer scale

  // Tensor parallelism (g of Megatron-LM, 1909.08053): this layer sees some of its input's entries. Given the
  // product x W^T of this part, sum() returns the product over all entries. The bias is added once, afterwards.
  void sum_by(std::function<Tensor(const Tensor& part)> sum) { sum_ = std::move(sum); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  bool drops() const { return training() && options_.dropout > 0; }
  size_t maps_after_dropout() const { return drops() ? weight.output_maps_shared_with(bias) : 0; }

  BranchOptions options_;
  std::function<Tensor(const Tensor&)> sum_;
};

}  // namespace isonorm::nn
