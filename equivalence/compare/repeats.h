// Internal: whether a model computes the same twice.
#pragma once

#include "equivalence/compare/own_training.h"

namespace isonorm::equivalence {

// Compares two runs of a model: same weights, buffers, examples and generator. Both have differentiated. Returns why
// the model is not repeatable: a loss or a gradient that deviates by more than bound(0) of criterion.h. Empty if it is
// repeatable, and if the first run has a NaN. Gradients below the share of OwnTraining::note_control() are rounding
// noise and do not count.
std::string not_repeatable(const char* model, const OwnTraining& once, const OwnTraining& again, DType dtype);

// The loss, or else the first parameter whose gradient has NaN or infinities: "loss is nan". Empty if all are finite.
std::string not_finite(const OwnTraining& run);

}  // namespace isonorm::equivalence
