// Ranks share gradients and the optimizer's state by the rows of matrices and tables (ZeRO, 1910.02054, stage 2), or the parameters, too
// (stage 3; FSDP, 2304.11277). A forward gathers a matrix where it needs it; a backward sums its gradient, of which each rank keeps its rows.
//
//   nn::Gpt model = ...;                                // the same on every rank
//   parallel::ShardedParameters shards(model, ranks);
//   optim::AdamW adamw(model.parameters());
//   training::Step step(model, adamw, training::cross_entropy_of, {.group = &ranks, .parts = &shards});
//
// A graph keeps what it needs of gathered matrices until its backward: with nn::recompute(model) that is one block's at a
// time. Where nothing is accumulated over parts of a batch, weights have the bits of a training without it, as far as nothing is clipped.
#pragma once

#include <memory>
#include <vector>

#include "parallel/parts.h"

namespace isonorm::parallel {

struct ShardedParametersOptions {
  bool keep_whole = false;  // stage 2: what was gathered is kept until an update changes the rows
};

class ShardedParameters : public Parts {
 public:
  // Replaces matrices and tables (rank 2 and above) by this rank's share of their rows: ceil(rows / ranks), with zeros behind the last. All
  // ranks have the same values. From then on every rank runs the model when one does. Make the optimizer after this.
  ShardedParameters(nn::Module& model, distributed::Group& group, ShardedParametersOptions options = {});

  void check_gradients() const override;

  void gather() override;
  void release() override;  // drops the gathered rows, unless keep_whole

 private:
  struct Rows;  // of one parameter
  std::vector<std::shared_ptr<Rows>> rows_;
  const bool keep_whole_;
};

}  // namespace isonorm::parallel
