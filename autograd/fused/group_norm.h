// Norms over the positions of an image and over channels. Channels are the last dimension.
#pragma once

#include "core/formulas/norm_spec.h"
#include "core/tensor.h"

namespace isonorm {

struct GroupNormOptions {
  NormKind kind = NormKind::layer;  // layer: (x - mean) / root; rms: x / root
  double eps = 1e-5;
  // true: root = sqrt(mean square) + eps, as in RMSNorm's published PyTorch code; false: sqrt(mean square + eps)
  bool eps_outside = false;
  double p = 1;  // rms: share of the positions, the leading ones in row-major order, used for the mean square
};

// (x - mean) / root gain + bias, or x / root gain + bias for kind rms. There is one statistic for each example and each
// of `groups` groups of neighbouring channels, over the group's channels at all positions (Wu & He, Group
// Normalization, 1803.08494). x [examples, ..., channels] of a floating dtype; gain and bias [channels] of x's dtype,
// or f32 if x is bf16, or undefined -> x's shape. With p < 1 the statistic uses the first ceil(p positions), at least
// 1.
//
// groups = channels: over positions only, which is instance norm (Ulyanov et al., 1607.08022) and, for kind rms, the
// spatial RMSNorm of Zhang & Sennrich's convolutional networks (1910.07467, README). groups = 1 with x [examples,
// channels]: layer_norm and rms_norm.
//
// Throws if the rank is below 2, groups do not divide the channels, the kind is another one, eps is below 0, p is
// outside of (0, 1] or below 1 with kind layer, or gain or bias do not fit.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain = {}, const Tensor& bias = {},
                  GroupNormOptions options = {});

struct BatchStatistics {
  Tensor mean, variance;  // [channels] of acc dtype, without graph; population variance
};

// Batch normalization in training (Ioffe & Szegedy, 1502.03167): (x - mean) / sqrt(variance + eps) gain + bias, with
// mean and variance of each channel over all dimensions but the last. x [..., channels], gain and bias as in
// group_norm(). If `statistics` is not null, it receives the batch's mean and variance. Throws if the rank is below 2,
// and like group_norm().
Tensor batch_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5,
                  BatchStatistics* statistics = nullptr);

namespace reference {
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& gain = {}, const Tensor& bias = {},
                  GroupNormOptions options = {});
Tensor batch_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5,
                  BatchStatistics* statistics = nullptr);
}  // namespace reference

}  // namespace isonorm
