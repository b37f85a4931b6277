// Rotation of a stream into another basis.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "streams/plan.h"

namespace isonorm::services {

// The file that --basis names; empty if it names a kind of basis and a seed.
std::string basis_file(const std::string& basis);
// Rotates the stream of a plan: by the basis "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h). Rows that
// were zero-mean have a mean then, so the form becomes uncentred(). Throws as check_rotatable() and check_plan(), and
// UsageError if SEED is no number.
void rotate(streams::Plan& plan, const TensorMap& outline, const std::string& basis);

}  // namespace isonorm::services
