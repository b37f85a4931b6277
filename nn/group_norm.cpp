#include "nn/group_norm.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

GroupNorm::GroupNorm(int64_t groups, int64_t channels, GroupNormLayerOptions o) : groups_(groups), options_(o) {
  check(groups > 0 && channels > 0 && channels % groups == 0, "group_norm: ", groups, " groups do not divide ",
        channels, " channels");
  if (!o.affine) return;
  weight = add_parameter("weight", ones({channels}));
  bias = add_parameter("bias", zeros({channels}));
}

Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, groups_, weight(), bias(), options_); }

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions o) : options_(o) {
  check(channels > 0, "batch_norm: ", channels, " channels");
  check(o.momentum >= 0 && o.momentum <= 1, "batch_norm: momentum is ", o.momentum, ", expected a share in [0, 1]");
  if (o.affine) {
    weight = add_parameter("weight", ones({channels}));
    bias = add_parameter("bias", zeros({channels}));
  }
  running_mean = add_buffer("running_mean", zeros({channels}));
  running_var = add_buffer("running_var", ones({channels}));
}

Tensor BatchNorm::forward(const Tensor& x) {
  const int64_t channels = running_mean.numel();
  check(x.rank() >= 2 && x.size(-1) == channels, "batch_norm: input ", x.shape(), " does not fit ", channels,
        " channels");
  if (!training()) {
    const DType acc = acc_dtype(x.dtype());
    const Tensor unit = rsqrt(running_var.to(acc) + options_.eps);
    const Tensor gain = weight(), offset = bias();
    const Tensor y = (x.to(acc) - running_mean.to(acc)) * (gain.defined() ? gain.to(acc) * unit : unit);
    return (offset.defined() ? y + offset.to(acc) : y).to(x.dtype());
  }
  const int64_t n = x.numel() / channels;
  check(n >= 2, "batch_norm: training needs 2 values of a channel at least, input ", x.shape(), " has ", n);
  BatchStatistics batch;
  const Tensor y = batch_norm(x, weight(), bias(), options_.eps, &batch);
  const NoGrad no_grad;
  const double unbiased = static_cast<double>(n) / static_cast<double>(n - 1), m = options_.momentum;
  const auto move = [&](const Tensor& running, const Tensor& to, double factor) {
    copy_into(running, running.to(to.dtype()) * (1 - m) + to * (m * factor));
  };
  move(running_mean, batch.mean, 1);
  move(running_var, batch.variance, unbiased);
  return y;
}

}  // namespace isonorm::nn
