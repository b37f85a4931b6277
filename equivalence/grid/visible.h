// What a model's function sees of its weights, measured on the model: which directions it is blind to, and in which
// coordinates of its stream it is the same function. expectation.h draws from it which ways to store weights exist.
#pragma once

#include <array>

#include "equivalence/grid/predicates.h"
#include "training/build_model.h"

namespace isonorm::equivalence {

struct Visible {
  bool affine = false;        // norms have a learned gain and bias, for which d - 1 stored coordinates have no place
  bool writers_mean = false;  // the function changes when writers lose their mean along the stream: P W (F3 fails)
  bool readers_mean = false;  // or readers: A P (F4 fails)
  // On a stream of rms_norm whose writers and readers are centred, gradients of writers have a mean (F6 fails); not
  // asked where readers' means are seen. RMSNorm's
  // have none, since its root of the mean square is turned into x by differentiation, which is centred too.
  bool gradient_mean = false;
  // Of each stream form: on that stream, with the same raw weights, the model is another function.
  std::array<bool, std::size(streams::kFormRows)> another_function = {};
};

// Measures all of it in f64: the logits and the gradients of a loss at the weights of `initial`, a raw model on a stream
// of layer_norm, and at two more points near it, on made examples. A property holds where nothing but rounding changes: up to bound() of
// criterion.h over the deviation of the same model with every weight moved by an ulp; of a gradient's mean, up to
// 64 d eps of its largest entry, rounding in a sum of d terms. Throws where that cannot be said:
// a deviation that is neither rounding nor at least 1e-6 of the largest logit, or not finite.
Visible measure_visible(const training::TrainingOptions& options, const nn::Module& initial);

}  // namespace isonorm::equivalence
