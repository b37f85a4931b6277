// Why two models differ: what evidence shows, and nothing else.
#pragma once

#include "equivalence/compare/own_training.h"

namespace isonorm::equivalence {

// Looks, at the present parameters, for: norms with different eps; a parameter whose role at the stream the two declare
// differently; one whose stored value the forward takes; mapped weights that got raw values; a difference that is gone in
// eval(); a first model that is not blind to a shift of its stream, and why (on no stream it has the second's roles); a parameter
// that may be a forgotten writer; and for what the gradient that is furthest off shows by itself (explain/hypotheses.h), which may
// be off by `limit`. `differs` measures the two once more. Empty where nothing shows.
std::string likely_cause(nn::Module& a, nn::Module& b, const Partners& partners, const Objective& loss,
                         const training::Examples& batch, const std::function<bool()>& differs, const Pair& gradient,
                         double limit);

// What a model's stream may have to do with an error of its forward, in brackets; empty where nothing shows.
std::string stream_hint(nn::Module& model, const std::string& error);

}  // namespace isonorm::equivalence
