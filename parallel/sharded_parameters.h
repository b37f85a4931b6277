// Ranks share the parameters themselves (ZeRO, 1910.02054, stage 3; FSDP, 2304.11277): each keeps some rows of every matrix and table, their
// gradients and their optimizer's state. A forward gathers a matrix where it needs it, a backward sums its gradient and scatters it.
//
//   nn::Gpt model = ...;                                // the same on every rank
//   parallel::ShardedParameters shards(model, ranks);
//   optim::AdamW adamw(model.parameters());
//   training::Step step(model, adamw, training::cross_entropy_of, {.group = &ranks, .parts = &shards});
//
// What a graph keeps of gathered matrices it keeps until its backward: with nn::TransformerStack::recompute() it keeps none, and a rank
// has one block's at a time.
#pragma once

#include "parallel/parts.h"

namespace isonorm::parallel {

class ShardedParameters : public Parts {
 public:
  // Replaces matrices and tables (rank 2 and above) by this rank's share of their rows: ceil(rows / ranks), with zeros behind the last.
  // All ranks have the same values. From then on every rank runs the model where one does, as often, with rows of its own. Make the
  // optimizer after this.
  ShardedParameters(nn::Module& model, distributed::Group& group);
};

}  // namespace isonorm::parallel
