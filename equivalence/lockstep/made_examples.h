// Generates batches from a seed: random images or ids, and random labels.
#pragma once

#include <algorithm>
#include <limits>

#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "training/model_options.h"
#include "training/steps/examples.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

// Mean that is added to the initial raw weights of runs on generated examples, so that projections have something to
// remove.
inline constexpr double kRawMean = 0.15;

// The batch of a step: images [batch, side, side, channels] uniform in [0, 1) and classes; or ids [batch, context] and
// target ids; or ids of pairs [batch, 2 context] without padding, and target ids. The same numbers on every device, and
// in every dtype up to rounding. longest: limits the ids per row if the context is longer.
inline training::Examples made_examples(const training::TrainingOptions& o, uint64_t step = 0,
                                        int64_t longest = std::numeric_limits<int64_t>::max()) {
  Generator g{o.seed, (step + 1) << 40};
  const training::Input input = o.model.row().input;
  const training::ModelShape shape = o.model.shape();
  const int64_t context = std::min(o.model.context(), longest);
  if (input == training::Input::text) {
    const Tensor ids = randint(0, shape.vocab, {o.batch, context}, kCpu, g);
    return training::Examples{ids, randint(0, shape.vocab, {o.batch, context}, kCpu, g)}.on(o.device);
  }
  if (input == training::Input::pairs) {
    const Tensor ids = randint(std::min<int64_t>(1, shape.vocab - 1), shape.vocab, {o.batch, 2 * context}, kCpu, g);
    return training::Examples{ids, randint(0, shape.vocab, {o.batch, context}, kCpu, g)}.on(o.device);
  }
  const Tensor images = rand({o.batch, shape.image, shape.image, shape.channels}, {DType::f64}, g);
  return training::Examples{images.to(o.dtype), randint(0, shape.classes, {o.batch}, kCpu, g)}.on(o.device);
}

}  // namespace isonorm::equivalence
