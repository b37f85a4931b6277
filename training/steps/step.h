// One training step: forward, loss, backward, limits on the gradients, update. Users' trainings, `isonorm train`, the
// benchmarks and all proofs use this step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "autograd/rounded_masters.h"
#include "distributed/group.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "distributed/parallel/parts.h"
#include "training/steps/objective.h"

namespace isonorm::training {

// Computes the loss and the gradients of a batch: clears the gradients, then runs forward and backward on `parts`
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

// Changes to the gradients before the update, applied in this order. 0 turns a change off.
struct GradientLimits {
  double l2 = 0;     // adds l2 w to the gradient of each w: L2 as a term of the loss, before the limits below
  double value = 0;  // clamps every entry to [-value, value]
  double gates = 0;  // scales the gradients of GPAS gates to at most this norm (2506.22049, section 5: 0.01)
  double norm = 0;   // scales all gradients together to at most this norm
};

struct LimitedGradients {
  double scale = 1;            // the factor for Optimizer::step
  std::optional<double> norm;  // of all gradients, before clipping; none without a limit on the norm
};

// Limits the gradients of `parameters`. l2, value and gates replace the gradients they change by new tensors. The norm
// limit changes nothing: it is returned as a factor, so that the optimizer needs no additional pass. gates: the
// parameters that are gates (nn::gates). Throws if a limit is negative or NaN.
LimitedGradients limit_gradients(const GradientLimits& limits, const std::vector<Tensor>& parameters,
                                 const std::vector<Tensor>& gates = {});

struct StepOptions {
  GradientLimits limits = {};
  int64_t accumulate = 1;                 // number of micro-batches of equal size
  std::optional<DType> activations = {};  // dtype of saved activations: the model's own (none), f32 or bf16
  // On a GPU, captures the third step as a CUDA graph that later steps replay (gpu/steps/captured.h): one driver call
  // for all kernels, the same bits. The objective and everything it calls must do the same each time and must not read
  // a tensor's value. A new graph is captured after a change of the batch's shapes, of a module's mode (train or eval),
  // of a parameter's storage or requires_grad, or of the optimizer's state. Throws if optimizer.replays() is false,
  // with `apply`, and with several ranks. No effect on the CPU.
  bool captured = false;
  // Ranks that train this model together, each given the same batches and rates (distributed/world.h); null: this
  // process alone. Every rank then has bit-identical weights after every step. A step throws Disagreement if a rank
  // would train something else, as far as this can be detected (training/steps/ranks.h); hooks on gradients cannot be
  // detected. Modules and hooks may call the group: their calls are independent of the gradients, which another thread
  // sends during the backward (Group::background).
  distributed::Group* group = nullptr;
  // The same bits on any number of ranks that divides `accumulate`, if nothing random is drawn: each rank computes
  // whole micro-batches, all ranks the same number, and their gradients are added in order. A rank keeps and sends one
  // gradient for each of its micro-batches.
  bool rank_invariant = false;
  // 1: each rank keeps the optimizer's state of its share of the parameters and updates them; then the ranks exchange
  // weights (ZeRO, 1910.02054, stage 1). The weights have the same bits, the state takes 1 / ranks of the memory, and
  // each step sends almost twice the weights' bytes in addition. An update clears the gradients of the other ranks'
  // parameters. With 0 every rank keeps the whole state. Not with `apply`.
  int zero = 0;
  // This rank's parts of the model (distributed/parallel/). Gradients are clipped by the norm of the whole model, and
  // gradients that the backward sums are not summed again. Only with optimizers that update each entry by itself, and
  // not with `zero`, `apply`, `rank_invariant` or `captured`.
  parallel::Parts* parts = nullptr;
  // Called instead of optimizer.step(scale), for an update that does more.
  std::function<void(double scale)> apply = {};
};

// The results of a step.
struct StepResult {
  double loss = 0;                      // before the update
  std::optional<double> gradient_norm;  // before clipping; none without a limit on the norm
};

// Used with an optimizer whose state is shared by ranks (StepOptions::zero). state_of_ranks() collects the whole state
// on every rank, for a file; all ranks call it. own_state() selects this rank's share of a whole state, for
// load_state_dict().
TensorMap state_of_ranks(distributed::Group& group, const TensorMap& own);
TensorMap own_state(const distributed::Group& group, const std::vector<Tensor>& parameters, const TensorMap& all);

// A model, its objective and its optimizer. Keeps references to model and optimizer.
//
//   training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}});
//   for (int t = 0; t < 1000; ++t) step(batch(t), schedule.lr(t));
//
// The two halves, differentiate() and update(), serve programs that look at the gradients in between.
class Step {
 public:
  // Throws if the optimizer updates none of the model's parameters. update() throws if none of the optimizer's
  // parameters has a gradient. With `apply` neither is checked.
  Step(nn::Module& model, optim::Optimizer& optimizer, Objective loss = cross_entropy_of, StepOptions options = {});
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Runs both halves, after optimizer.set_lr(lr), which sets the first group's rate and keeps the ratio of the other
  // groups to it; without lr the present rates stay. Warns at the first step if the model is in evaluation mode, as
  // load_model() returns it. With `accumulate` or a group, the first two steps throw if the losses of micro-batches or
  // ranks do not combine to the loss of the whole batch. To check this they call the objective more often, between the
  // gradients and the update (training/steps/loss_checks.h).
  StepResult operator()(const Examples& batch, std::optional<double> lr = {});

  // training::differentiate() for this model.
  double differentiate(const Examples& batch);
  // Limits the gradients of the optimizer's parameters and updates them. Returns the norm before clipping, none without
  // a limit on the norm.
  std::optional<double> update(std::optional<double> lr = {});

  nn::Module& model() const { return model_; }
  distributed::Group* group() const { return options_.group; }  // null: this process alone

 private:
  bool is_shared() const { return options_.group && options_.group->size() > 1; }
  // The groups of ranks that take each step together: because they share its rows, or the model's layers.
  std::vector<distributed::Group*> groups() const;
  void check_ranks(const Examples& batch, double lr);
  std::vector<Tensor> losses_of_batch(const Examples& batch);  // one [] for each micro-batch
  Tensor take_update(std::optional<double> lr);                // the norm before clipping; undefined: no limit
  void check_first_steps(const Examples& batch);               // in the first two steps; counts the step
  // Takes the update and appends its norm, if any, to the losses.
  std::vector<Tensor> and_norm(std::vector<Tensor> losses, std::optional<double> lr);
  std::vector<double> replayed(const Examples& batch, std::optional<double> lr);  // values of and_norm()

  nn::Module& model_;
  optim::Optimizer& optimizer_;
  const Objective loss_;
  const StepOptions options_;
  Masters masters_;    // leaves that the last forward rounded to bf16
  int64_t taken_ = 0;  // number of steps
  struct Replay;
  std::unique_ptr<Replay> replay_;  // null before the first capture
};

}  // namespace isonorm::training
