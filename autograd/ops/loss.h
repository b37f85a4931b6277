// Softmax, and losses, defined as in PyTorch. The losses of the elements or rows are reduced to their mean (the
// default) or sum, or returned as they are. Floating tensors f32, f64 or bf16 (computed in f32).
#pragma once

#include "core/tensor.h"

namespace isonorm {

// e^x / sum e^x along `dim`, shifted by the maximum so that it does not overflow. A row that is all -inf gives NaN, as
// in PyTorch; in other rows entries of -inf give exactly 0. Throws for rank 0, a wrong dimension or an integer dtype.
Tensor softmax(const Tensor& x, int dim = -1);

// x - ln sum e^x along `dim`, without forming e^x / sum e^x. Throws like softmax().
Tensor log_softmax(const Tensor& x, int dim = -1);

// Losses, defined as in PyTorch. The losses of the elements or rows are reduced to their mean (the default) or sum, or
// returned as they are. Floating tensors f32, f64 or bf16 (computed in f32).

enum class Reduction { mean, sum, none };

struct CrossEntropyOptions {
  int64_t ignore_index = -100;  // rows with this target are ignored, also in the mean
  double label_smoothing = 0;   // e: the target distribution is (1 - e) at the target plus e / classes everywhere
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  // [classes] of the logits' dtype, or f32 for bf16: factor of each class's loss
};

// -sum_j q_j ln softmax(x)_j for each row x of logits [..., classes]; q is the (smoothed) one-hot distribution of
// target [...] (i64). mean divides by the number of rows that are not ignored; if there are none, the loss and its
// gradients are 0 (PyTorch's loss is NaN). Fused: reads the logits once and keeps two numbers per row; the backward
// makes no tensor of the logits' size but the gradient. Throws if shapes do not fit, a target is neither a class
// nor ignore_index, or label_smoothing is outside of [0, 1].
//
// Soft targets: a target of the logits' shape and dtype holds the distributions q themselves, which smoothing mixes
// with 1 / classes. mean divides by the number of rows, ignore_index has no effect, and the target takes a gradient,
// too.
//
// Class weights: the loss is -sum_j weight_j q_j ln softmax(x)_j, and for i64 targets mean divides by the sum of the
// targets' weights (the mean is 0 if this sum is 0). The weight takes a gradient.
//
// Soft targets and class weights are computed by ordinary ops, in f32 for bf16, and are not fused.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  int64_t ignore_index = -100;  // as in CrossEntropyOptions
  Reduction reduction = Reduction::mean;
  Tensor weight = {};
};

// -x_target for each row x of log-probabilities [..., classes], target [...] (i64): cross_entropy() of the output of
// log_softmax(). Options, mean and errors as in cross_entropy().
Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossOptions& options = {});

// Losses of x and target, which have one shape and dtype; both take gradients. Throw if shapes or dtypes differ.

// (x - target)^2
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// |x - target|; the gradient is 0 where they are equal
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// With d = x - target: d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2) (Huber, 1964). Throws unless delta > 0.
Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1, Reduction reduction = Reduction::mean);
// huber_loss() / delta, with beta for delta: d^2 / (2 beta) if |d| < beta, else |d| - beta / 2. beta 0: l1_loss().
// Throws if beta < 0.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1, Reduction reduction = Reduction::mean);
// Kullback-Leibler divergence of log-probabilities x from probabilities `target`: target (ln target - x) for each
// element, 0 if target is 0. With log_target the target holds logarithms, too. As in PyTorch's kl_div, mean is over all
// elements; the mean divergence of rows is the sum divided by the number of rows. Computed in f32 for bf16.
Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean, bool log_target = false);
// -(target ln p + (1 - target) ln(1 - p)) with p = sigmoid(x), computed as target softplus(-x) + (1 - target)
// softplus(x): no overflow, and no cancellation for targets in [0, 1].
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
// The same for probabilities x instead of logits: -(target ln x + (1 - target) ln(1 - x)). The logarithms are at least
// -100, and the gradient by x is (x - target) / max(x (1 - x), 1e-12), as in PyTorch. Computed in f32 for bf16. If x
// leaves [0, 1], throws on the CPU; on a device the loss is NaN.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);

}  // namespace isonorm
