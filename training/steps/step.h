// One training step: forward, loss, backward, limits on the gradients, update. Trainings of users, `isonorm train`, the
// benchmarks and everything that is proved take this one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "autograd/rounded_masters.h"
#include "distributed/group.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "parallel/parts.h"
#include "training/steps/objective.h"

namespace isonorm::training {

// Computes the loss and the gradients of one batch: clears the gradients, then runs forward and backward on `parts`
// micro-batches of equal size. Returns the loss.
//
// Up to rounding, loss and gradients equal the results for the whole batch at once; Objective says how micro-batches
// are weighted. Throws if `parts` does not divide the number of examples.
//
// group: data-parallel training. All ranks pass the same model and the whole batch; each rank computes a contiguous
// share of every micro-batch. Loss and gradients are summed over the ranks, and all ranks get the same bits. Dropout
// masks equal the masks of a single process if the shares are equal and every mask has a multiple of 256 entries;
// otherwise they differ. Throws Disagreement if the ranks passed different batches or have different random states. It
// does not check that the objective is a mean over rows; Step does.
double differentiate(nn::Module& model, const Objective& loss, const Examples& batch, int64_t parts = 1,
                     distributed::Group* group = nullptr);

// What is done to gradients before an update, in this order; 0: nothing.
struct GradientLimits {
  double l2 = 0;     // l2 w is added to the gradient of each w: L2 as a term of the loss, whose gradient is limited too
  double value = 0;  // entries are clamped to [-value, value]
  double gates = 0;  // the gradients of the gates of GPAS (2506.22049, section 5: 0.01) are scaled to at most this norm
  double norm = 0;   // the gradients of all parameters are scaled to at most this norm
};

struct LimitedGradients {
  double scale = 1;            // that Optimizer::step is to read the gradients with
  std::optional<double> norm;  // of all gradients, before it was clipped; none without a limit on it
};

// Limits the gradients of `parameters`. What it changes it puts in new tensors, the norm aside: that is for the
// optimizer to do, without a pass of its own. gates: which of them are (nn::gates). Throws where a limit is negative or
// NaN.
LimitedGradients limit_gradients(const GradientLimits& limits, const std::vector<Tensor>& parameters,
                                 const std::vector<Tensor>& gates = {});

struct StepOptions {
  GradientLimits limits = {};
  int64_t accumulate = 1;                 // parts of equal size that a batch is differentiated in
  std::optional<DType> activations = {};  // what the backward needs is kept in: the model's dtype (none), f32 or bf16
  // On a GPU the third step is written down as a graph, which later ones replay (gpu/steps/captured.h): one call of the
  // driver for all kernels. Numbers and bits are the same. The objective, and whatever it calls, does the same each time
  // and reads no number of a tensor. It begins anew where batches have another shape, a module another mode (train or
  // eval), a parameter another storage or another requires_grad, the optimizer another state. Throws where
  // optimizer.replays() is false, and with `apply`. On the CPU it means nothing.
  bool captured = false;
  // Ranks that train this model together, each given the same batches and rates (distributed/world.h); null: this
  // process alone. Every rank then has the same weights after every step, bit by bit. A step throws Disagreement if a
  // rank would train something else, as far as that can be seen (training/steps/ranks.h); a hook on a gradient cannot
  // be seen. Modules and hooks may call the group: their calls are independent of the gradients, which another thread
  // sends during the backward (Group::background).
  distributed::Group* group = nullptr;
  // Each of the `accumulate` parts is one rank's, as many on each, and all are added in their order: loss and weights have the same bits on any
  // number of ranks that divides them, where nothing is drawn. A rank holds a gradient for each of its parts, and sends as many.
  bool whole_parts = false;
  // 1: each rank keeps the optimizer's state of its share of the parameters, updates those, and the weights are exchanged (ZeRO,
  // 1910.02054, stage 1): the same bits, state / ranks of memory, and as many bytes again as the weights have twice. Its gradients are gone
  // after an update. 0: every rank keeps all. Not with `apply`.
  int zero = 0;
  // The parts of the model that this rank has (parallel/): gradients are clipped by the norm of the whole, and those that are summed in the
  // backward are not summed again. Only with optimizers that update each entry by itself, and not with `zero`, `apply`, `whole_parts`.
  parallel::Parts* parts = nullptr;
  // In place of optimizer.step(scale), where the update is more than that.
  std::function<void(double scale)> apply = {};
};

// What a step saw.
struct StepResult {
  double loss = 0;                      // before the update
  std::optional<double> gradient_norm;  // before clipping; none where nothing is clipped
};

// Of an optimizer whose state ranks share (StepOptions::zero): the state of all, on every rank, for a file; every rank calls it. And of such
// a state what this rank keeps, for load_state_dict().
TensorMap state_of_ranks(distributed::Group& group, const TensorMap& own);
TensorMap own_state(const distributed::Group& group, const std::vector<Tensor>& parameters, const TensorMap& all);

// A model, its objective and its optimizer. Keeps references to model and optimizer.
//
//   training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}});
//   for (int t = 0; t < 1000; ++t) step(batch(t), schedule.lr(t));
//
// The two halves are there for those who look at gradients between them.
class Step {
 public:
  // Throws where the optimizer updates none of the model's parameters; an update, where none of these has a gradient. With
  // `apply` neither is asked.
  Step(nn::Module& model, optim::Optimizer& optimizer, Objective loss = cross_entropy_of, StepOptions options = {});
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Both halves, after optimizer.set_lr(lr): the first group's rate, to which the others keep their ratio (none: at the
  // optimizer's present rates). Warns at the first step if the model is in evaluation mode, as load_model() gives it. With
  // `accumulate` or a group, the first two steps
  // throw if the losses of micro-batches or ranks do not combine to the loss of the whole batch. They call the objective
  // more often for this, between the gradients and the update (training/steps/loss_checks.h).
  StepResult operator()(const Examples& batch, std::optional<double> lr = {});

  // training::differentiate() of its model.
  double differentiate(const Examples& batch);
  // Limits the gradients of what the optimizer updates, and updates it. Returns their norm before clipping, none where
  // nothing is clipped.
  std::optional<double> update(std::optional<double> lr = {});

  nn::Module& model() const { return model_; }
  distributed::Group* group() const { return options_.group; }  // that takes it together; null: this process alone

 private:
  bool is_shared() const { return options_.group && options_.group->size() > 1; }
  std::vector<distributed::Group*> groups()
      const;  // of ranks that take each step together: for its rows, and its layers
  void check_ranks(const Examples& batch, double lr);
  std::vector<Tensor> losses_of_batch(const Examples& batch);  // of its parts, [] each
  Tensor take_update(std::optional<double> lr);                // the norm before clipping, undefined: none
  void check_first_steps(const Examples& batch);               // in the first two steps; then the step counts
  // Takes the update, and adds its norm to the losses if there is one.
  std::vector<Tensor> and_norm(std::vector<Tensor> losses, std::optional<double> lr);
  std::vector<double> replayed(const Examples& batch, std::optional<double> lr);  // the numbers of and_norm()

  nn::Module& model_;
  optim::Optimizer& optimizer_;
  const Objective loss_;
  const StepOptions options_;
  Masters masters_;    // that the last forward read rounded
  int64_t taken_ = 0;  // steps
  struct Replay;
  std::unique_ptr<Replay> replay_;  // null: there is none yet
};

}  // namespace isonorm::training
