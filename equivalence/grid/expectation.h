// The theory of a cell of the grid: does a way to store and update weights follow Pre-LN under an optimizer? Derived
// from three things: the way's description (Variant), measured properties of the optimizer's update (Predicates), and
// the measured blindness of the model's function (Visible). The proofs are in docs/normalization.md, "Fifteen ways to
// store one model".
#pragma once

#include <optional>
#include <set>
#include <string>

#include "equivalence/coordinates/variant.h"
#include "equivalence/grid/predicates.h"
#include "equivalence/judge/judgement.h"
#include "streams/form.h"
#include "training/model_options.h"

namespace isonorm::equivalence {

struct Visible {
  bool affine = false;        // norms have a learned gain and bias, which d - 1 stored coordinates cannot hold
  bool writers_mean = false;  // the function changes if writers lose their mean along the stream, P W (F3 fails)
  bool readers_mean = false;  // the same for readers: A P (F4 fails)
  // On a stream of rms_norm with centred writers and readers, gradients of writers have a mean (F6 fails). Not measured
  // if readers_mean. With RMSNorm they have none: the derivative of its root mean square is a multiple of x, which is
  // centred, too.
  bool gradient_mean = false;
  // The stream forms in which the model, with the same raw weights, computes a different function than the original.
  std::set<streams::Form> another_function = {};
};

// Measures all fields in f64, from logits and loss gradients on generated examples (made_examples.h), at the weights of
// `initial` (a raw model on a stream of layer_norm) and at two more points near it. A property holds if nothing but
// rounding changes: up to bound() of criterion.h, applied to the deviation of the same model with every weight moved by
// an ulp; for the mean of a gradient, up to 64 d eps of its largest entry, the rounding in a sum of d terms. Throws if
// it cannot decide: if a deviation is neither rounding nor at least 1e-6 of the largest logit, or is not finite.
Visible measure_visible(const training::TrainingOptions& options, const nn::Module& initial);

// equivalent, different: compared with Pre-LN's trajectory. None: there is no such model, or the optimizer would need a
// value that is not stored. undecided occurs only as an observation.
using MaybeVerdict = std::optional<Verdict>;
inline const char* name_of(MaybeVerdict verdict) { return verdict ? name_of(*verdict) : "n/a"; }

struct Derived {
  MaybeVerdict value;
  std::string because;     // a sentence: the property that decided, or the reason why there is no verdict
  bool same_start = true;  // if different: false if the model is another function from the start
};

Derived expectation(const Variant& variant, const Predicates& update, const Visible& visible = {});

}  // namespace isonorm::equivalence
