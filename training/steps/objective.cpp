#include "training/steps/objective.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"

namespace isonorm::training {

Tensor Objective::operator()(nn::Module& model, const Examples& batch) const {
  if (!is_sum()) return mean_(model, batch);
  const WeightedSum total = sum(model, batch);
  return total.sum * inverse_weight(total.weight).to(total.sum.dtype());
}

WeightedSum Objective::sum(nn::Module& model, const Examples& batch) const {
  check(is_sum(), "objective: returns a mean, but a sum and its weight are required here");
  const WeightedSum total = sum_(model, batch);
  check(total.sum.numel() == 1 && total.weight.numel() == 1, "objective: sum ", total.sum.shape(), " and weight ",
        total.weight.shape(), ", expected one number each");
  return {reshape(total.sum, {}), reshape(detach(total.weight), {})};
}

Tensor weight_of_mean(const Examples& batch) {
  const Tensor& t = batch.targets;
  if (t.dtype() != DType::i64) return full({}, static_cast<double>(t.size(0)), {DType::f64, t.device()});
  return isonorm::sum(ne(t, static_cast<double>(CrossEntropyOptions().ignore_index)).to(DType::f64));
}

Tensor inverse_weight(const Tensor& weight) {
  const NoGrad no_grad;
  const Tensor w = weight.to(DType::f64), none = eq(w, 0);
  return where(none, zeros_like(w), 1 / where(none, ones_like(w), w));
}

WeightedSum cross_entropy_sum(const Tensor& logits, const Tensor& target, CrossEntropyOptions options) {
  options.reduction = Reduction::sum;
  const Tensor sum = cross_entropy(logits, target, options);
  const NoGrad no_grad;
  const TensorOptions wide{DType::f64, target.device()};
  if (is_floating(target.dtype())) return {sum, full({}, static_cast<double>(target.numel() / target.size(-1)), wide)};
  const Tensor id = flatten(target), counts = ne(id, static_cast<double>(options.ignore_index));
  if (!options.weight.defined()) return {sum, isonorm::sum(counts.to(DType::f64))};
  const Tensor own = index_select(options.weight, 0, where(counts, id, zeros_like(id)));
  return {sum, isonorm::sum(where(counts, own.to(DType::f64), zeros({}, wide)))};
}

Tensor cross_entropy_of(nn::Module& model, const Examples& batch) {
  return cross_entropy(model(batch.inputs), batch.targets);
}

Objective smoothed_cross_entropy(double label_smoothing) {
  return [label_smoothing](nn::Module& model, const Examples& batch) {
    return cross_entropy(model(batch.inputs), batch.targets, {.label_smoothing = label_smoothing});
  };
}

}  // namespace isonorm::training
