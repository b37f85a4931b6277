// Examples: the batch of a training step.
#pragma once

#include <utility>
#include <vector>

#include "autograd/ops/create.h"
#include "io/data/each_tensor.h"

namespace isonorm::training {

// Inputs, targets and any further tensors of a batch, for example masks. Example i is row i of each tensor.
struct Examples {
  Tensor inputs, targets;
  std::vector<Tensor> more = {};

  int64_t count() const { return targets.size(0); }
  // Rows [begin, begin + count) of each tensor, sharing its storage. Throws if a tensor has another number of rows than
  // the targets.
  Examples rows(int64_t begin, int64_t count) const;
  Examples on(Device device) const;

  // Applies f to each tensor.
  template <class F> Examples each(const F& f) const {
    Examples changed{f(inputs), f(targets), {}};
    for (const Tensor& x : more) changed.more.push_back(f(x));
    return changed;
  }
  // All tensors in order: inputs, targets, more.
  std::vector<Tensor> tensors() const;
};

// Internal. Throws unless there are at least two tensors.
Examples examples_of_tensors(std::vector<Tensor> tensors);

// The tensors of a batch of a loader in data/, in order: inputs, targets, more. Throws if there are fewer than two.
template <class Batch> Examples examples_of(const Batch& batch) {
  std::vector<Tensor> tensors;
  data::each_tensor(batch, [&](const Tensor& x) { tensors.push_back(x); });
  return examples_of_tensors(std::move(tensors));
}

}  // namespace isonorm::training
