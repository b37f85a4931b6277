// Internal: whether ranks and micro-batches minimize the loss of the whole batch. The objective is evaluated aside: without a
// graph, and with buffers and random numbers as before at the end.
#pragma once

#include "training/steps/ranks.h"

namespace isonorm::training {

// Throws Disagreement, with both losses, if a rank's loss of the first `rows` rows differs from rank 0's. An objective (or a
// model) that calls the group may sum in an order of its own on each rank. Losses may then differ by the rounding of k terms,
// k = targets x ranks: by 8 eps sqrt(k) max(1, |loss|). All other losses have the same bits.
void check_same_loss(distributed::Group& group, const TrainedTogether& trained, const Examples& batch, int64_t rows);

// Throws Disagreement if the loss of two neighbouring shares of the batch (micro-batches, or ranks' rows of them) is not the loss that
// differentiate() combines from the losses of the two shares. Each rank looks at other pairs, and together the ranks look at all. Modules
// are in evaluation mode: dropout and the statistics of a batch do not belong to the objective.
//
// Both losses lose digits by rounding, and how many depends on the model. They are equal if they agree in half of the digits of the
// coarsest dtype among parameters and loss: within sqrt(eps) max(|loss|, (|sum 1| + |sum 2|) / |weight|) + 32 eps, where the last
// term is for a loss whose terms of size 1 cancel. There is no verdict if a loss is not finite, if it differs when the same
// rows are evaluated again (the objective draws random numbers), and if the objective or the model calls the group.
void check_shares(const TrainedTogether& trained, const Examples& batch);

}  // namespace isonorm::training
