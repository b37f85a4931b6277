// A model whose forward and backward call the group: its norms compute their statistics over all ranks' rows.
#pragma once

#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "distributed/parallel/collectives.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "training/steps/step.h"

namespace isonorm::test {

// Three layers tanh((h - mean) / sqrt(variance + eps)) with h = x W^T. The gradient of a layer is larger than a bucket
// (GradientSum::bucket_for), so it is sent while the backward computes the layers before.
struct NormedStack : nn::Module {
  static constexpr int kWidth = 768, kLayers = 3;
  explicit NormedStack(distributed::Group& group) : group(group) {
    for (int i = 0; i < kLayers; ++i) layers.push_back(&add(text("l", i), nn::Linear(kWidth, kWidth, {.bias = false})));
    to(DType::f64);
  }
  Tensor summed(const Tensor& t) { return parallel::shared_by_ranks(parallel::sum_of_parts(t, group), group); }
  Tensor forward(const Tensor& x) override {
    Tensor h = x;
    for (nn::Linear* layer : layers) {
      h = (*layer)(h);
      const Tensor count = summed(full({1}, static_cast<double>(h.size(0)), h.options())),
                   apart = h - summed(sum(h, {0})) / count;
      h = tanh(apart * rsqrt(summed(sum(square(apart), {0})) / count + 1e-5));
    }
    return h;
  }
  distributed::Group& group;
  std::vector<nn::Linear*> layers;
};

// The losses of three steps, the same on all ranks.
inline std::vector<double> losses_of_normed_stack(distributed::Group& group) {
  manual_seed(3);
  NormedStack model(group);
  optim::Sgd sgd(model.parameters(), {.lr = 0.1});
  training::Step step(model, sgd,
                      [](nn::Module& m, const training::Examples& e) { return mse_loss(m(e.inputs), e.targets); },
                      {.limits = {.norm = 1}, .group = &group});
  std::vector<double> losses;
  for (uint64_t t = 0; t < 3; ++t) {
    Generator draws{7, t << 32};
    const auto rows = [&] { return randn({12, NormedStack::kWidth}, {DType::f64}, draws); };
    const Tensor inputs = rows(), targets = rows();
    losses.push_back(step({inputs, targets}).loss);
  }
  return losses;
}

// Throws unless the ranks' losses equal the losses of a single process up to rounding. A loss is a mean of some 10,000
// terms of size 1, and the steps before it round each term about 50 times.
inline void check_normed_stack(distributed::Group& group) {
  distributed::Group one;
  const std::vector<double> expected = losses_of_normed_stack(one), found = losses_of_normed_stack(group);
  for (size_t t = 0; t < expected.size(); ++t)
    check(std::abs(found[t] - expected[t]) < 1e-12 * expected[t], "step ", t, ": loss ", found[t], ", on one rank ",
          expected[t]);
}

}  // namespace isonorm::test
