// Internal: why two models differ. Only causes that were tested on these two models are named.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "equivalence/causes/trial.h"
#include "equivalence/explain/models.h"
#include "equivalence/judge/judgement.h"
#include "optim/optimizer.h"

namespace isonorm::equivalence {

struct Explained {
  std::string place = {};               // the point at which the forwards, or backwards, part; empty if not found
  std::string cause = {};               // empty if no tested cause removes the difference
  std::vector<std::string> tried = {};  // the causes that were tested
};

inline void take_cause(Judgement& judgement, const Explained& explained) {
  judgement.place = explained.place, judgement.likely_cause = explained.cause, judgement.tried = explained.tried;
  judgement.cause_tested = true;
}

// Tests causes at the point at which the models of the trial differ. A cause is named if the difference vanishes under
// it, in the loss and in every gradient, within the comparison's bounds; if the two, run again without it, differ
// again; and if the difference vanishes under it once more. The causes:
//   a model that does not repeat itself; a factor that all gradients share; another eps of a norm; a part that acts in
//   training only; a writer of B's stream that is not mapped (declared otherwise, forgotten, read as stored, stored
//   mapped); a stream of A whose mean its loss sees, or that a vector scales; and, if the forwards part in a norm of A,
//   another eps, divisor, kind or gain.
Explained explain_difference(Trial& trial);

// The place where two forwards, or two backwards, first differ. The ops of both models are recorded, and their results
// are compared.
struct Parting {
  std::string sentence;  // empty if nothing shows a place, or if no gradients are left to spend
  std::string path;      // of the module of A whose op is the first that differs, in the forward
};

// A result of A is found in B if an op of B has a result with the same entries in any order, up to the change that an
// ulp of A's weights causes. The two models may therefore use other ops and other layouts.
//
// If the loss differs, names the last results of A that agree, and the first op after them whose result does not. A
// result agrees if it is found in B, or if a result that is found is computed from it. If the loss agrees, names the
// last result found in B whose gradient differs; the gradients of later results agree.
Parting where_they_part(Trial& trial);

// A cause to test: the setting that would make the two models agree. on() changes the models themselves before a run,
// and off() changes them back.
struct StreamCause {
  std::string name, sentence;
  Setting setting;
  std::function<void()> on = [] {}, off = [] {};
  std::string but = {};  // the gradient of this parameter does not count
};

// Empty if B is on no stream that takes means off.
std::vector<StreamCause> stream_causes(Trial& trial);

// A hint, in brackets, that the model's stream may have caused an error of its forward; empty if there is no sign.
std::string stream_hint(nn::Module& model, const std::string& error);

// Why the updates of two models differ although their gradients agree.

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
