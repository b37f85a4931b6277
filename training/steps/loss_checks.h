// Internal: checks of the loss in the first steps: ranks and micro-batches minimize the loss of the whole batch, and its
// graph has no leaf that nothing trains.
#pragma once

#include <memory>
#include <vector>

#include "autograd/node.h"
#include "training/steps/ranks.h"

namespace isonorm::training {

// The next two checks evaluate the objective without a graph, and restore buffers and random numbers at the end.

// Throws Disagreement, with both losses, if a rank's loss of the first `rows` rows differs from rank 0's. An objective
// (or a model) that calls the group may sum in a different order on each rank. Its losses may differ by the rounding of
// k terms, k = targets x ranks: by 8 eps sqrt(k) max(1, |loss|). All other losses must have the same bits.
void check_same_loss(distributed::Group& group, const TrainedTogether& trained, const Examples& batch, int64_t rows);

// A share of the batch is a micro-batch or, with ranks, one rank's rows in it. Throws Disagreement if the loss of two
// neighbouring shares together differs from the loss that differentiate() combines from the two. Each rank compares
// other pairs of shares, and together the ranks compare all pairs. With n shares, a rank calls the objective 3 (n - 1)
// / ranks times, rounded up to whole pairs. Call it after the step's gradients, since a module may initialize itself in
// its first forward pass.
//
// The pairs are compared in evaluation mode: dropout and the statistics of a batch do not belong to the objective. If a
// pair differs, it is compared again in the modes that train() set. It passes if its losses agree then, since the
// objective depends on the mode.
//
// Both losses lose digits by rounding; how many depends on the model. They are equal if they agree in half of the
// digits of the coarsest dtype among parameters and loss: within sqrt(eps) max(|loss|, (|sum 1| + |sum 2|) / |weight|)
// + 32 eps. The last term is for a loss whose terms of size 1 cancel.
//
// There is no verdict if a loss is not finite; if the objective throws for these rows, draws random numbers, or gives
// another loss when the same rows come again; or if the objective or the model calls a group.
void check_shares(const TrainedTogether& trained, const Examples& batch);

// Finds leaves that get a gradient although nothing trains them, such as a Tensor member with require_grad() that the
// module did not register.
class UnownedLeaves {
 public:
  // Notes the leaves in the graph of `loss` that no module has registered and no optimizer owns. Call it before
  // backward().
  void note(const Tensor& loss);
  // Warns about each noted leaf that still exists and has a gradient, unless it is a tensor of the batch. Leaves that
  // an objective makes for itself (the points of a gradient penalty) are gone with the graph.
  void warn_of_rest(const Examples& batch) const;

 private:
  std::vector<std::weak_ptr<autograd::Node>> leaves_;
};

}  // namespace isonorm::training
