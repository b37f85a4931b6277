// Internal: why the updates of two models differ although their gradients agree: causes that were tested on the step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "equivalence/causes/cause.h"
#include "equivalence/explain/models.h"
#include "optim/optimizer.h"

namespace isonorm::equivalence {

// A step of both models, tensor by tensor: of A in its coordinates, of B in its own.
struct ComparedUpdate {
  std::vector<UpdateRows> a, b;
  int step = 1;  // counted from 1
};

// A cause is named if it explains every tensor that differs, within rounding:
//   - another rate, decay or eps of a step of SGD, or of the first step of Adam or AdamW
//   - a decay that one model adds to the gradient and the other takes off the weights
//   These are not named if second steps of new optimizers, `make` and `make_second`, differ in another way than first
//   ones, as with another momentum: Adam, Lion and Adagrad begin with the same step.
//   - if a map acts: the optimizer does not commute with it. `make` then gives both steps, each from the weights and
//     gradients in the coordinates of its model.
// If there is no cause, and the step is not the first one, the place is the optimizer's state if new optimizers take
// the same step. names: of A's parameters; differing: of these whose weights differ; mapped: whether a map acts.
using StepMaker = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>& parameters)>;
Explained explain_update(const std::vector<std::string>& names, const std::vector<std::string>& differing,
                         const ComparedUpdate& update, bool mapped, const StepMaker& make,
                         const StepMaker& make_second);

}  // namespace isonorm::equivalence
