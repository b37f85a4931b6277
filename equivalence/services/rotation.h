// The basis that a stream is rotated into.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::services {

// The file that --basis names; empty where it names a kind.
std::string basis_file(const std::string& basis);
// What a rotation makes of a form: rows that were zero-mean have a mean then.
streams::Form rotated_form(streams::Form form);
// Gives the layout that form, and the rotation of a basis "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h). Throws as
// check_rotatable() and check_layout(), and UsageError where the seed is none.
void rotate(streams::Placement& layout, const TensorMap& outline, const std::string& basis);

}  // namespace isonorm::services
