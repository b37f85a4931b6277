#include "nn/weight_norm.h"

#include <cmath>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {

Tensor weight_norm(const Tensor& v, const Tensor& gain) {
  check(v.rank() >= 2, "weight_norm: the weight has shape ", v.shape(), ", expected [out, ...]");
  check(gain.shape() == Dims{v.size(0)}, "weight_norm: gain ", gain.shape(), " does not fit weight ", v.shape());
  const DType wide = acc_dtype(v.dtype());
  const Tensor rows = flatten(v, 1, -1).to(wide);
  return reshape(rows * unsqueeze(gain.to(wide) / norm(rows, {1}), 1), v.shape()).to(v.dtype());
}

void initialise_weight_norm(const Tensor& gain, const Tensor& bias, const Tensor& outputs) {
  const int64_t out = gain.numel();
  check(outputs.rank() >= 2 && outputs.size(-1) == out && outputs.numel() > 0 && bias.shape() == gain.shape(),
        "weight_norm: outputs ", outputs.shape(), ", gain ", gain.shape(), " and bias ", bias.shape(), " do not fit");
  const Tensor rows = reshape(detach(outputs), {-1, out}).to(DType::f64);
  const std::vector<double> means = mean(rows, {0}).to_vector<double>(),
                            variances = var(rows, {0}, 0).to_vector<double>();
  std::vector<double> gains = gain.to_vector<double>(), offsets(gains.size());
  for (size_t o = 0; o < gains.size(); ++o) {
    if (variances[o] > 0) gains[o] = 1 / std::sqrt(variances[o]);
    offsets[o] = -means[o] * gains[o];
  }
  copy_into(gain, from_vector(gains, gain.shape()));
  copy_into(bias, from_vector(offsets, bias.shape()));
}

}  // namespace isonorm::nn
