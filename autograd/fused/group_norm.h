// Norms over the places of an image as well as over channels, which are the last dimension.
#pragma once

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

struct GroupNormOptions {
  NormKind kind = NormKind::layer;  // layer: (x - mean) / root; rms: x / root
  double eps = 1e-5;
  bool eps_outside =
      false;     // root = sqrt(mean square) + eps, as RMSNorm's published PyTorch code; else sqrt(mean square + eps)
  double p = 1;  // rms: the leading share of the places, in row-major order, that the mean square is taken over
};

// x / root gain + bias with one statistic for each example and each of `groups` groups of neighbouring channels, over the group's
// channels at all places (Wu & He, Group Normalization, 1803.08494). x [examples, ..., channels] of a floating dtype,
// gain and bias [channels] of that dtype, or f32 ones for x of bf16, or undefined -> x's shape. groups = channels: over
// places alone, instance norm (Ulyanov et al., 1607.08022) and, of kind rms, the spatial RMSNorm of Zhang & Sennrich's convolutional networks
// (1910.07467, README). groups = 1 of [examples, channels]: layer_norm and rms_norm. With p < 1 ceil(p places), at least
// 1. Throws on a rank below 2, groups that do not divide the channels, other kinds, eps below 0, p outside of (0, 1] or
// with kind layer, gain or bias that do not fit.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain = {}, const Tensor& bias = {},
                  GroupNormOptions options = {});

struct BatchStatistics {
  Tensor mean, variance;  // [channels] of acc dtype, without graph; the variance is the population's
};

// (x - mean) / sqrt(variance + eps) gain + bias, mean and variance of a channel over all dimensions but the last (Ioffe & Szegedy,
// Batch Normalization, 1502.03167): what a batch in training has. x [..., channels], gain and bias as group_norm()'s.
// Where `statistics` is not null it receives the batch's. Throws on a rank below 2 and as group_norm() does.
Tensor batch_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5,
                  BatchStatistics* statistics = nullptr);

namespace reference {
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain = {}, const Tensor& bias = {},
                  GroupNormOptions options = {});
Tensor batch_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5,
                  BatchStatistics* statistics = nullptr);
}  // namespace reference

}  // namespace isonorm
