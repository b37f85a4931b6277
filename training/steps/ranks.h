// Internal: what ranks that take a step together do in it (data parallelism; Goyal et al., 1706.02677, section 2).
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

// Of `count` rows from `begin` those of this rank: as many each, where they do not divide the last ones have one more.
Rows rows_of(int rank, int ranks, int64_t begin, int64_t count);
// The number of examples in each of `parts` micro-batches. Throws unless `parts` divides `examples`.
int64_t size_of_part(int64_t examples, int64_t parts);

// While it lives, the default generator draws this rank's share of what one process would draw for `rows` rows; where ranks have
// different numbers of rows, from a place of its own. Afterwards it stands in the same place on every rank.
class DrawsOfRank {
 public:
  [[nodiscard]] DrawsOfRank(const distributed::Group& group, int64_t rows);
  ~DrawsOfRank();
  DrawsOfRank(const DrawsOfRank&) = delete;
  DrawsOfRank& operator=(const DrawsOfRank&) = delete;

 private:
  static constexpr uint64_t kApart = uint64_t{1} << 28;  // blocks of 4 numbers between the places of two ranks; a
                                                         // step of isonorm train has room for 4096 of them
  const Generator before_;
  const uint64_t ranks_;
  const bool even_;
};

// While it lives, the model's batch norms in training mode take their statistics over the rows of all ranks.
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

// Which rank keeps the optimizer's state of each parameter, by its number (ZeRO, 1910.02054, stage 1): in their order, each on the rank
// that has the fewest elements so far.
std::vector<int> owners_of(const std::vector<Tensor>& parameters, int ranks);
// Around an update in which each rank updates its own parameters: the gradients of the others are cleared; all get all weights.
void keep_own_gradients(const distributed::Group& group, const std::vector<Tensor>& parameters);
void share_weights(distributed::Group& group, const std::vector<Tensor>& parameters);

// Of the module and those in it whether they train, behind what `into` holds.
void modes_of(const nn::Module& module, std::vector<int64_t>& into);

// A training that ranks share.
struct TrainedTogether {
  nn::Module& model;
  const optim::Optimizer& optimizer;
  const Objective& loss;
  const StepOptions& options;
};

// Checks before a step that the ranks train the same. Throws Disagreement if a rank differs in
//   each step: batch, rate, random state, modes of modules, frozen parameters; after step 1 also one parameter, in turn;
//   steps 0 and 1: instruction set, model, weights, buffers, and the optimizer's state unless each rank has its own part;
//   every kBetweenLosses steps, from the first on: the loss of the first rows of the batch. This calls the objective.
// Throws Error in steps 0 and 1 if the optimizer has a parameter that is none of the model's: nobody would sum its gradient.
inline constexpr int64_t kBetweenLosses = 100;
void check_step(distributed::Group& group, int64_t step, const TrainedTogether& trained, const Examples& batch,
                double lr);
// Compares only batch, rate, random state and modes, and the weight `watched` if there is one.
void check_batch(distributed::Group& group, const nn::Module& model, const Examples& batch, double lr,
                 const nn::NamedParameter* watched = nullptr);
// An optimizer's state_dict() under the paths of its parameters: "head.weight's exp_avg" instead of "27.exp_avg".
TensorMap by_path(const nn::Module& model, const optim::Optimizer& optimizer, const TensorMap& state);

}  // namespace isonorm::training
