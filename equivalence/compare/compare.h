// Compares two modules of a user: do they have the same gradients, and do they train the same? Controls measure how far
// rounding can move a result: they are copies of the first model, moved by one unit in the last place.
//
//   equivalence::Comparison c = equivalence::compare_gradients(
//       layer, rms, {}, training::cross_entropy_of, [&](int64_t point) { return batch(point); });
//   if (!c.equivalent()) std::puts(c.sentence().c_str());
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
#include "equivalence/judge/judgement.h"
#include "equivalence/lockstep/training.h"
#include "optim/optimizer.h"
#include "training/steps/step.h"

namespace isonorm::equivalence {

// An objective draws its random numbers from the default generator, which has the same state for every model.
using training::Objective;

// The examples of a point or step, counted from 0.
using Batches = std::function<training::Examples(int64_t)>;

// The result of a comparison.
struct Comparison : Judgement {
  double deviation = 0, control = 0;  // the largest, over gradients (and weights): of B, of the controls
};

struct CompareOptions {
  int points = 5;                 // compare_gradients: random points
  int steps = 20;                 // compare_trajectories: training steps
  int controls = 4;               // copies of A moved by one ulp
  uint64_t seed = 1;              // for the points, the controls and the loss's random numbers
  double clip = 0;                // compare_trajectories: largest global norm of the gradient; 0: none
  bool may_be_identical = false;  // accepts gradients and weights that are equal to the last bit throughout
  bool inputs = true;             // compare_gradients: compares the gradients of the batch's floating inputs, too
  // compare_gradients: the weights of a point are the present ones, each times 1 + u with u uniform in
  // [-perturb, perturb]. 0: the present weights. Not set: new random weights. Set it if weights must keep their sign.
  std::optional<double> perturb = {};
};

// Compares the losses of A and B and their gradients in all parameters, B's mapped back: g_A and M* g_B. With
// CompareOptions::inputs it also compares the gradients of the batch's floating inputs and further tensors (not of its
// targets). After the step it compares the buffers that the map relates and that begin with the same values.
//
// At each point A's parameters get random values with the root mean square r of their present values (0.1 if a
// parameter is 0) and a mean of about r/2, and B gets the mapped values. Frozen parameters, and parameters that the map
// leaves out, keep their values. CompareOptions::perturb moves the present weights instead. Every run begins with the
// present buffers. At the end both models have their parameters, buffers and gradients back. f64 and f32.
//
// Each tensor is compared with its own controls at the same point: its entries, and its size as a whole (pairs.h), stay
// within bound() of criterion.h.
//   different: also a parameter that either model lacks, a NaN in B alone, models that share tensors
//   undecided: a model that does not repeat itself at the first point, a NaN in A, equal bits at every point, controls
//              that do not move, a detectable factor above 1 + largest_bound()
//
// Calls `loss` controls + 2 times at each point, and twice more at the first; again only if the models differ.
// Throws if the loss throws: the message says which model raised the error.
Comparison compare_gradients(nn::Module& a, nn::Module& b, const ParameterMap& map, const Objective& loss,
                             const Batches& batches, const CompareOptions& options = {});

using MakeModel = std::function<std::unique_ptr<nn::Module>()>;

// The first or the second model. Controls and negative controls are copies of the first.
enum class Which { first, second };

// Makes the optimizer of a model: a function of its parameters, or of its parameters and Which. The second kind can
// give the two models different optimizers or schedules.
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

// Trains A, its controls and B in lockstep on the same batches. B begins with A's initial parameters, mapped by `map`.
// The verdict follows the rules of `isonorm prove` (criterion.h): at every step loss, gradients and weights stay within
// the bound that the controls give. Gradients are compared in A's coordinates (M* g_B), before the optimizer's step()
// changes them; weights in B's, against M w_A, without blind rows. After the last step, if nothing differs, the buffers
// are compared that the map relates and that began with the same values.
//
// The bound has to stay below the deviations of negative controls. These train A for kNegativeSteps steps (the batches
// repeat if there are fewer) with a mistake: one batch is exchanged for another, or, if the two are equal, the gradient
// of the second step is negated. If A has norms with gains, a second negative control freezes them.
//
// Models and optimizers are made here, by several calls of these functions; the initial parameters come from the first
// `make_a()`. A model that does not repeat itself on the first batch is undecided. Calls `batches` for steps in order,
// and again from 0. Throws if a function makes no model or no optimizer, or throws: the message says which model raised
// the error.
Comparison compare_trajectories(const MakeModel& make_a, const MakeModel& make_b, const ParameterMap& map,
                                const Objective& loss, const MakeOptimizer& make_optimizer, const Batches& batches,
                                const CompareOptions& options = {});

}  // namespace isonorm::equivalence
