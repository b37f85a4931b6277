// Internal: causes that have to do with the residual stream that B was put on (streams/parametrize.h).
#pragma once

#include "equivalence/compare/trial.h"

namespace isonorm::equivalence {

// A cause, as the setting in which it would make the two agree.
struct StreamCause {
  std::string name, sentence;
  Setting setting;
  std::string but = {};  // the gradient of this parameter does not count
};

// None if B is on no stream that takes means off.
std::vector<StreamCause> stream_causes(Trial& trial);

}  // namespace isonorm::equivalence
