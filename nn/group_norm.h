// Norm layers of images [n, ..., channels]: over groups of channels and all places of an example, or over a batch.
#pragma once

#include <functional>

#include "autograd/fused/group_norm.h"
#include "nn/module.h"

namespace isonorm::nn {

// GroupNormOptions, and whether there are parameters.
struct GroupNormLayerOptions {
  NormKind kind = NormKind::layer;
  double eps = 1e-5;
  bool eps_outside = false;
  double p = 1;
  bool affine = true;  // a learned gain (ones) and bias (zeros) by channel

  operator GroupNormOptions() const { return {kind, eps, eps_outside, p}; }
};

// group_norm() with parameters weight and bias [channels]. groups = channels: instance norm and, of kind rms, spatial
// RMSNorm.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, GroupNormLayerOptions options = {});
  GroupNorm rebuild() const { return GroupNorm(groups_, channels_, options_); }

  Parameter &weight, &bias;  // undefined unless affine

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  int64_t groups_, channels_;
  GroupNormLayerOptions options_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  // the weight of a batch in the running statistics, in [0, 1]
  bool affine = true;
};

// Batch norm (Ioffe & Szegedy, 1502.03167) of x [n, ..., channels]. In training, normalizes by the statistics of the
// batch and updates the buffers running_mean and running_var [channels]: running = (1 - momentum) running + momentum
// batch, with the batch's variance times n/(n - 1) for n values per channel (as PyTorch does). Otherwise normalizes by
// the buffers, which begin as 0 and 1. Throws if x has another number of channels, or in training fewer than 2 values
// per channel.
class BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {});
  BatchNorm rebuild() const { return BatchNorm(running_mean.numel(), options_); }

  Parameter &weight, &bias;  // undefined unless affine
  Tensor &running_mean, &running_var;
  // Sums a rank's part [n] over the ranks that share a batch; differentiable. training::Step sets it for its forward
  // and backward passes, and statistics are then taken over all ranks' rows. Null: x is the whole batch.
  std::function<Tensor(const Tensor&)> sum_over_ranks;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  struct Normalized {
    Tensor y;
    BatchStatistics batch;
    double count = 0;  // number of values per channel
  };
  Normalized normalize_over_ranks(const Tensor& x) const;
  BatchNormOptions options_;
};

}  // namespace isonorm::nn
