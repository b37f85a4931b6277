// Internal: how ranks take a step together (data parallelism; Goyal et al., 1706.02677, section 2).
#pragma once

#include <optional>

#include "core/random.h"
#include "distributed/group.h"
#include "nn/group_norm.h"
#include "training/steps/step.h"

namespace isonorm::training {

struct Rows {
  int64_t begin, count;
};

// This rank's share of `count` rows from `begin`. Shares are contiguous and differ by at most one row.
Rows rows_of(int rank, int ranks, int64_t begin, int64_t count);
// The number of examples in each of `parts` micro-batches. Throws unless `parts` divides `examples`.
int64_t size_of_part(int64_t examples, int64_t parts);

// While it lives, the default generator draws this rank's share of the numbers that one process would draw for `rows`
// rows. If the ranks have different numbers of rows, it draws other numbers, different on each rank. Afterwards the
// generator has the same state on every rank.
class DrawsOfRank {
 public:
  [[nodiscard]] DrawsOfRank(const distributed::Group& group, int64_t rows);
  ~DrawsOfRank();
  DrawsOfRank(const DrawsOfRank&) = delete;
  DrawsOfRank& operator=(const DrawsOfRank&) = delete;

 private:
  // Distance between the generators of two ranks, in blocks of 4 numbers. isonorm train seeds its steps 2^40 blocks
  // apart, which is enough for 4096 ranks x micro-batches.
  static constexpr uint64_t kApart = uint64_t{1} << 28;
  const Generator before_;
  const uint64_t ranks_;
  const bool even_;
};

// While it lives, the model's batch norms in training mode compute their statistics over all ranks' rows.
class BatchNormsOverRanks {
 public:
  [[nodiscard]] BatchNormsOverRanks(nn::Module& model, distributed::Group& group);
  ~BatchNormsOverRanks();
  BatchNormsOverRanks(const BatchNormsOverRanks&) = delete;
  BatchNormsOverRanks& operator=(const BatchNormsOverRanks&) = delete;
  bool empty() const { return norms_.empty(); }

 private:
  std::vector<nn::BatchNorm*> norms_;
};

// The rank that keeps the optimizer's state, by index of the parameter (ZeRO, 1910.02054, stage 1). In order, each
// parameter goes to the rank that has the fewest elements so far.
std::vector<int> owners_of(const std::vector<Tensor>& parameters, int ranks);
// Before and after an update of each rank's own parameters. keep_own_gradients() clears all other
// gradients; share_weights() sends every rank's weights to all ranks.
void keep_own_gradients(const distributed::Group& group, const std::vector<Tensor>& parameters);
void share_weights(distributed::Group& group, const std::vector<Tensor>& parameters);

// Appends the training flags of the module and its descendants to `into`.
void modes_of(const nn::Module& module, std::vector<int64_t>& into);

// A training that ranks share.
struct TrainedTogether {
  nn::Module& model;
  const optim::Optimizer& optimizer;
  const Objective& loss;
  const StepOptions& options;
};

// Checks before a step that the ranks train the same. Throws Disagreement if a rank differs in
//   each step: batch, rate, random state, modes of modules, frozen parameters; after step 1 a parameter, in turn;
//   steps 0 and 1: instruction set, model, weights, buffers, and the optimizer's state unless a rank has only its part;
//   every kBetweenLosses steps, from the first step: the loss of the first rows of the batch. This calls the objective.
// Throws Error in steps 0 and 1 if the optimizer has a parameter that is not the model's: nobody would sum its
// gradient.
inline constexpr int64_t kBetweenLosses = 100;
void check_step(distributed::Group& group, int64_t step, const TrainedTogether& trained, const Examples& batch,
                double lr);
// Compares only batch, rate, random state, modes and, if given, the weight `watched`.
void check_batch(distributed::Group& group, const nn::Module& model, const Examples& batch, double lr,
                 const nn::NamedParameter* watched = nullptr);
// An optimizer's state_dict() with the paths of the parameters: "head.weight's exp_avg" instead of "27.exp_avg".
TensorMap by_path(const nn::Module& model, const optim::Optimizer& optimizer, const TensorMap& state);

}  // namespace isonorm::training
