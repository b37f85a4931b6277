// Internal: checks that ranks and micro-batches minimize the loss of the whole batch. The checks evaluate the objective
// without a graph, and restore buffers and random numbers at the end.
#pragma once

#include "training/steps/ranks.h"

namespace isonorm::training {

// Throws Disagreement, with both losses, if a rank's loss of the first `rows` rows differs from rank 0's. An objective
// (or a model) that calls the group may sum in a different order on each rank. Its losses may differ by the rounding of
// k terms, k = targets x ranks: by 8 eps sqrt(k) max(1, |loss|). All other losses must have the same bits.
void check_same_loss(distributed::Group& group, const TrainedTogether& trained, const Examples& batch, int64_t rows);

// Throws Disagreement if the loss of two neighbouring shares of the batch differs from the loss that differentiate()
// combines from their two losses. A share is a micro-batch, or a rank's rows in it. Each rank checks other pairs, and
// together the ranks check all pairs. Modules are in evaluation mode: dropout and batch statistics are not part of the
// objective.
//
// Both losses lose digits by rounding, and how many depends on the model. They are equal if they agree in half of the
// digits of the coarsest dtype among parameters and loss: within sqrt(eps) max(|loss|, (|sum 1| + |sum 2|) / |weight|)
// + 32 eps. The last term is for a loss whose terms of size 1 cancel.
//
// There is no verdict in three cases: a loss is not finite; it differs when the same rows are evaluated again (the
// objective draws random numbers); the objective or the model calls the group.
void check_shares(const TrainedTogether& trained, const Examples& batch);

}  // namespace isonorm::training
