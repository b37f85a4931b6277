// Internal: causes that have to do with the residual stream that B was put on (streams/parametrize.h).
#pragma once

#include "equivalence/causes/trial.h"

namespace isonorm::equivalence {

// A cause, as the setting in which it would make the two agree, and what that changes in the models beside it.
struct StreamCause {
  std::string name, sentence;
  Setting setting;
  std::function<void()> on = [] {}, off = [] {};
  std::string but = {};  // the gradient of this parameter does not count
};

// None if B is on no stream that takes means off.
std::vector<StreamCause> stream_causes(Trial& trial);

// What a model's stream may have to do with an error of its forward, in brackets; empty where nothing shows.
std::string stream_hint(nn::Module& model, const std::string& error);

}  // namespace isonorm::equivalence
