#include "equivalence/grid/update.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "streams/parametrize.h"
#include "training/optimizers.h"

namespace isonorm::equivalence {

MakeUpdate update_of(const training::TrainingOptions& o) {
  return [o](const std::vector<streams::NamedParameter>& parameters) -> Update {
    const std::shared_ptr<optim::Optimizer> optimizer = build_optimizer(o, {parameters.begin(), parameters.end()});
    return [o, optimizer] { optimizer->step(limit_gradients(o.limits(), optimizer->parameters()).scale); };
  };
}

Track follow(const MakeUpdate& make, const std::vector<streams::NamedParameter>& like, const History& history,
             const TensorFunction& after) {
  std::vector<streams::NamedParameter> parameters = like;
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].tensor = detached::clone(history.weights[i]);
    require_grad(parameters[i].tensor);
  }
  const Update update = make(parameters);
  NoGrad no_grad;
  Track track;
  for (const std::vector<Tensor>& gradients : history.gradients) {
    for (size_t i = 0; i < parameters.size(); ++i) set_grad(parameters[i].tensor, detached::clone(gradients[i]));
    update();
    std::vector<Tensor>& weights = track.emplace_back();
    for (const streams::NamedParameter& p : parameters) {
      if (after) copy_into(p.tensor, after(detach(p.tensor), p));
      weights.push_back(detached::clone(p.tensor));
    }
  }
  return track;
}

History changed(const std::vector<streams::NamedParameter>& like, const History& history, const TensorFunction& weights,
                const TensorFunction& gradients) {
  return {changed(like, Track{history.weights}, weights)[0], changed(like, history.gradients, gradients)};
}

Track changed(const std::vector<streams::NamedParameter>& like, const Track& track, const TensorFunction& weights) {
  if (!weights) return track;
  Track out = track;
  for (std::vector<Tensor>& tensors : out)
    for (size_t i = 0; i < like.size(); ++i) tensors[i] = weights(tensors[i], like[i]);
  return out;
}

Tensor along(const Tensor& matrix, const Tensor& x, int dim) {
  return contiguous(transpose(linear(transpose(x, dim, x.rank() - 1), matrix), dim, x.rank() - 1));
}

Tensor orthogonal_matrix(int64_t d, Generator& generator) {
  Tensor q = eye(d, d, {DType::f64});
  for (int64_t i = 0; i < d; ++i) {
    const Tensor v = randn({d, 1}, {DType::f64}, generator);
    q = q - matmul(v, matmul(transpose(v, 0, 1), q)) * (2 / sum(square(v)).item());
  }
  return q;
}

}  // namespace isonorm::equivalence
