// Internal: causes that have to do with the residual stream that B was put on (streams/parametrize.h).
#pragma once

#include "equivalence/causes/trial.h"

namespace isonorm::equivalence {

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

}  // namespace isonorm::equivalence
