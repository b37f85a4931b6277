// Sharded training: each rank keeps a share of the rows of matrices and tables, with their gradients and optimizer
// state (ZeRO, 1910.02054: stage 3; FSDP, 2304.11277). A forward gathers a matrix when it is used. A backward sums its
// gradient, and each rank keeps the rows that it owns. With keep_whole, gathered parameters are kept (stage 2).
//
//   nn::Gpt model = ...;                                // the same on every rank
//   parallel::ShardedParameters shards(model, ranks);
//   optim::AdamW adamw(model.parameters());
//   training::Step step(model, adamw, training::cross_entropy_of, {.group = &ranks, .parts = &shards});
//
// A graph keeps gathered matrices until its backward if it needs them; with nn::recompute(model) only one block's
// matrices at a time. Without gradient accumulation and clipping, weights have the same bits as without sharding.
#pragma once

#include <memory>
#include <vector>

#include "distributed/parallel/parts.h"

namespace isonorm::parallel {

struct ShardedParametersOptions {
  bool keep_whole = false;  // stage 2: keeps gathered rows until an update changes them
};

class ShardedParameters : public Parts {
 public:
  // Replaces matrices and tables (rank 2 and above) by this rank's share of their rows: ceil(rows / ranks), padded with
  // zeros on the last ranks. All ranks must have the same values. From then on all ranks run the model together. Create
  // the optimizer after this.
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
