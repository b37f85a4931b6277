#include "nn/group_norm.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {
namespace {

int64_t divided(int64_t channels, int64_t groups) {
  check(groups > 0 && channels > 0 && channels % groups == 0, "group_norm: ", groups, " groups do not divide ",
        channels, " channels");
  return channels;
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, int64_t channels, GroupNormLayerOptions o)
    : weight(add_parameter("weight", o.affine ? ones({divided(channels, groups)}) : Tensor())),
      bias(add_parameter("bias", o.affine ? zeros({channels}) : Tensor())),
      groups_(groups),
      channels_(channels),
      options_(o) {
  divided(channels, groups);
}

Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, groups_, weight(), bias(), options_); }

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions o)
    : weight(add_parameter("weight", o.affine ? ones({channels}) : Tensor())),
      bias(add_parameter("bias", o.affine ? zeros({channels}) : Tensor())),
      running_mean(add_buffer("running_mean", zeros({channels}))),
      running_var(add_buffer("running_var", ones({channels}))),
      options_(o) {
  check(channels > 0, "batch_norm: ", channels, " channels");
  check(o.momentum >= 0 && o.momentum <= 1, "batch_norm: momentum is ", o.momentum, ", expected a share in [0, 1]");
}

// Computes batch_norm() over all ranks' rows. Every mean is the sum over the ranks, divided by the number of values on
// all ranks.
BatchNorm::Normalized BatchNorm::normalize_over_ranks(const Tensor& x) const {
  const int64_t channels = running_mean.numel();
  const Tensor rows = reshape(x.to(acc_dtype(x.dtype())), {-1, channels}), gain = weight(), offset = bias();
  const Tensor sums =
      sum_over_ranks(cat({sum(rows, {0}), full({1}, static_cast<double>(rows.size(0)), rows.options())}));
  const double count = detach(narrow(sums, 0, channels, 1)).item();
  const Tensor mean = narrow(sums, 0, 0, channels) / count, apart = rows - mean;
  const Tensor variance = sum_over_ranks(sum(square(apart), {0})) / count;
  Tensor y = apart * rsqrt(variance + options_.eps);
  if (gain.defined()) y = y * gain.to(y.dtype());
  if (offset.defined()) y = y + offset.to(y.dtype());
  return {reshape(y, x.shape()).to(x.dtype()), {detach(mean), detach(variance)}, count};
}

Tensor BatchNorm::forward(const Tensor& x) {
  const int64_t channels = running_mean.numel();
  check(x.rank() >= 2 && x.size(-1) == channels, "batch_norm: input ", x.shape(), " is no [n, ..., channels] of ",
        channels, " channels");
  if (!training()) {
    const DType acc = acc_dtype(x.dtype());
    const Tensor unit = rsqrt(running_var.to(acc) + options_.eps);
    const Tensor gain = weight(), offset = bias();
    const Tensor y = (x.to(acc) - running_mean.to(acc)) * (gain.defined() ? gain.to(acc) * unit : unit);
    return (offset.defined() ? y + offset.to(acc) : y).to(x.dtype());
  }
  Normalized n;
  if (sum_over_ranks)
    n = normalize_over_ranks(x);
  else
    n.y = batch_norm(x, weight(), bias(), options_.eps, &n.batch), n.count = static_cast<double>(x.numel() / channels);
  check(n.count >= 2, "batch_norm: training needs 2 values of a channel at least, input ", x.shape(), " has ", n.count);
  const NoGrad no_grad;
  const double unbiased = n.count / (n.count - 1), m = options_.momentum;
  const auto move = [&](const Tensor& running, const Tensor& to, double factor) {
    copy_into(running, running.to(to.dtype()) * (1 - m) + to * (m * factor));
  };
  move(running_mean, n.batch.mean, 1);
  move(running_var, n.batch.variance, unbiased);
  return n.y;
}

}  // namespace isonorm::nn
