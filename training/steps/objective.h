// Objective: the loss that a training minimizes, as a mean or as a sum and its weight.
#pragma once

#include <concepts>
#include <functional>

#include "autograd/ops/loss.h"
#include "nn/module.h"
#include "training/steps/examples.h"

namespace isonorm::training {

// The sum [] of the losses of a batch, and the weight [] that the mean divides it by: the number of examples or tokens
// that count, or the sum of their weights. No gradient passes through the weight.
struct WeightedSum {
  Tensor sum, weight;
};

// A loss of a model on a batch: a function (nn::Module&, const Examples&) that returns a Tensor or a WeightedSum.
//
// A Tensor [] is a mean: over the targets that are not -100 if targets are i64, else over the examples. Its value over
// no target has to be 0, as cross_entropy()'s. Micro-batches and ranks (differentiate()) weight their means by the
// number of these targets. A mean over other rows (another ignore_index, class weights, a mask) would therefore depend
// on the number of micro-batches and ranks. The first two steps of a Step refuse such a mean.
//
// A Step calls it once for each micro-batch, and more often in the first two steps (and on ranks every hundredth step),
// with other rows of the batch. An objective or module that counts its calls counts the additional calls, too.
//
// A WeightedSum allows any weights: micro-batches and ranks add sums and weights, and divide once. The loss is sum /
// weight; loss and gradients are 0 if the weight is 0.
//
//   Objective objective = [](nn::Module& model, const Examples& batch) {
//     return cross_entropy_sum(model(batch.inputs), batch.targets, {.ignore_index = 0});
//   };
class Objective {
 public:
  template <class F> using Result = std::invoke_result_t<F&, nn::Module&, const Examples&>;
  template <class F>
  requires std::convertible_to<Result<F>, Tensor> Objective(F mean) : mean_(std::move(mean)) {}
  template <class F>
  requires std::same_as<Result<F>, WeightedSum> Objective(F sum) : sum_(std::move(sum)) {}

  // The mean loss [].
  Tensor operator()(nn::Module& model, const Examples& batch) const;

  bool is_sum() const { return sum_ != nullptr; }
  // Throws unless is_sum(), and if the sum or the weight has more than one element.
  WeightedSum sum(nn::Module& model, const Examples& batch) const;

 private:
  std::function<Tensor(nn::Module&, const Examples&)> mean_;
  std::function<WeightedSum(nn::Module&, const Examples&)> sum_;
};

// The weight of an objective's mean, [] of f64: the number of targets that are not -100 if targets are i64, else the
// number of examples.
Tensor weight_of_mean(const Examples& batch);

// 1 / weight, or 0 for a weight of 0: the factor that turns a WeightedSum's sum into the mean, [] of f64.
Tensor inverse_weight(const Tensor& weight);

// cross_entropy() as a sum with the weight that its mean divides by: the number of rows that are not ignored, or the
// sum of their class weights. options.reduction is ignored. Throws as cross_entropy().
WeightedSum cross_entropy_sum(const Tensor& logits, const Tensor& target, CrossEntropyOptions options = {});

// cross_entropy(model(inputs), targets).
Tensor cross_entropy_of(nn::Module& model, const Examples& batch);

// cross_entropy_of() with this share of each target's weight spread evenly over all classes (Szegedy et al.,
// 1512.00567). The objective throws if the share is outside of [0, 1].
Objective smoothed_cross_entropy(double label_smoothing);

}  // namespace isonorm::training
