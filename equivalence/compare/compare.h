// Comparing models of one's own: do two modules have the same gradients, and do they train the same? What counts as
// the same is measured beside it, with controls: the first model moved by one unit in the last place.
//
//   equivalence::Comparison c = equivalence::compare_gradients(
//       layer, rms, {}, training::cross_entropy_of, [&](int64_t point) { return batch(point); });
//   if (!c.same()) std::puts(c.message().c_str());
//   // different: at point 1 the loss agrees, and 1 of 8 gradients does not: look at the backward
//   //   gradient of down.weight: 2.1e-01, the bound is 5.8e-13; down.weight[0, 0] is 0.031, in the reference -0.012
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/coordinates/parameter_map.h"
#include "equivalence/lockstep/result.h"
#include "equivalence/lockstep/training.h"
#include "optim/optimizer.h"
#include "training/steps/step.h"

namespace isonorm::equivalence {

// What an objective draws at random it draws from the default generator, which stands at the same place for every
// model.
using training::Objective;

// The examples of a point or step, counted from 0.
using Batches = std::function<training::Examples(int64_t)>;

// The result of a comparison.
struct Comparison {
  Verdict verdict = Verdict::different;
  std::string reason;  // one sentence: the share of the bound and what would have shown, or what differs
  // The first step (or point) at which something differs, the entry furthest off, and every tensor that differs there, in
  // the order of A's parameters.
  std::optional<Difference> first;
  Horizon horizon;                    // of compare_trajectories
  double deviation = 0, control = 0;  // the largest, over gradients (and weights): of B, of the controls
  // compare_gradients, where nothing differs: a factor of 1 + so much of any tensor would have shown, but for those that
  // are 0 or rounding noise.
  double resolution = 0;
  // What was compared nowhere: parameters that the map leaves out, buffers without a partner, ... Part of message() if
  // the verdict is `same`.
  std::vector<std::string> not_compared;

  // Of a difference, if something shows it: the place at which the two forwards, or the two backwards, part; a cause that was
  // tested: applied to the models at hand, it removes the difference in the loss and in every gradient, and without it the
  // difference is there again; else the causes that were tested in vain.
  std::string place, cause;
  std::vector<std::string> tried;

  bool same() const { return verdict == Verdict::same; }
  // "same: ...", "undecided: ..." or "different: ...", and below that a line for each tensor that differs, for the place and
  // for the cause.
  std::string message() const;
};

struct CompareOptions {
  int points = 5;                 // compare_gradients: random points
  int steps = 20;                 // compare_trajectories: of training
  int controls = 4;               // copies of A moved by one ulp
  uint64_t seed = 1;              // of the points, the controls and what the loss draws
  double clip = 0;                // compare_trajectories: largest global norm of the gradient; 0: none
  bool may_be_identical = false;  // accepts gradients and weights that are equal to the last bit throughout
  bool inputs = true;             // compare_gradients: compares the gradients of the batch's floating inputs, too
  // compare_gradients: the weights of a point are the present ones, each times 1 + u with u uniform in
  // [-perturb, perturb]. 0: the present weights. None: weights are drawn anew. For weights that must keep their sign.
  std::optional<double> perturb = {};
};

// Compares the gradients of `loss` in all parameters of A with those of B, mapped back: g_A and M* g_B, and the losses;
// also, with CompareOptions::inputs, the gradients of the batch's floating inputs and further tensors (not of its
// targets), and after the step the buffers that the map relates and that begin with the same values.
//
// At each point A's parameters are drawn anew, of their present size and with a mean of half of it (0.1 if a parameter is
// 0), and B gets what `map` makes of them. Frozen parameters, and parameters that the map leaves out, keep their values.
// CompareOptions::perturb moves the present weights instead. Every run begins with the present buffers. At the end both
// models have their parameters, buffers and gradients back. f64 and f32.
//
// Each tensor is held against its own controls of that point: its entries, and its size as a whole (power.h), stay within
// bound() of criterion.h.
//   different  also: a parameter that either model lacks, a NaN in B alone, models that share tensors
//   undecided  a model that does not repeat itself at the first point, a NaN in A, equal bits at every point, controls
//              that do not move, a resolution above largest_bound()
//
// Calls `loss` controls + 2 times at each point, and four times more at the first; again only if the models differ.
// Throws where the loss does.
Comparison compare_gradients(nn::Module& a, nn::Module& b, const ParameterMap& map, const Objective& loss,
                             const Batches& batches, const CompareOptions& options = {});

using MakeModel = std::function<std::unique_ptr<nn::Module>()>;

// Which model something is made for. Controls and wrong trainings are copies of the first.
enum class Which { first, second };

// Makes the optimizer of a model: a function of its parameters, or of its parameters and of which model it is. The second
// kind gives the two models optimizers or schedules of their own.
//
//   [](const std::vector<Tensor>& p, equivalence::Which which) -> std::unique_ptr<optim::Optimizer> {
//     if (which == equivalence::Which::first) return std::make_unique<optim::AdamW>(p);
//     return std::make_unique<MyAdamW>(p);
//   }
class MakeOptimizer {
 public:
  using Parameters = std::vector<Tensor>;
  template <class F>
  requires std::invocable<F&, const Parameters&> MakeOptimizer(F make)
      : make_([make = std::move(make)](const Parameters& p, Which) mutable -> std::unique_ptr<optim::Optimizer> {
          return make(p);
        }) {}
  template <class F>
  requires std::invocable<F&, const Parameters&, Which> MakeOptimizer(F make) : make_(std::move(make)) {}

  std::unique_ptr<optim::Optimizer> operator()(const Parameters& parameters, Which which) const {
    return make_(parameters, which);
  }

 private:
  std::function<std::unique_ptr<optim::Optimizer>(const Parameters&, Which)> make_;
};

// Trains A, its controls and B in lockstep on the same batches, B from what `map` makes of A's initial parameters, and
// judges as `isonorm prove` does (criterion.h): at every step loss, gradients (M* g_B in A's coordinates, before the
// optimizer's step() changes them) and weights (in B's, against M w_A; blind rows left out) stay within the bound that the
// controls give.
//
// The wrong trainings that the bound has to stay below are A's own over kNegativeSteps steps (batches from the first on
// again if there are fewer): with one batch exchanged for another, or, if these two are equal, with the gradient of one
// step negated; and, if A has norms with gains, with these frozen.
//
// Models and optimizers are made here; the initial parameters are those of the first `make_a()`. Both functions are called
// several times. A model that does not repeat itself on the first batch is undecided. Calls `batches` for steps in order,
// and again from 0. Throws if a function makes no model or no optimizer.
Comparison compare_trajectories(const MakeModel& make_a, const MakeModel& make_b, const ParameterMap& map,
                                const Objective& loss, const MakeOptimizer& make_optimizer, const Batches& batches,
                                const CompareOptions& options = {});

}  // namespace isonorm::equivalence
