// Rotation of a stream into another basis.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::services {

// The file named by --basis; empty if --basis names a kind of basis.
std::string basis_file(const std::string& basis);
// The form after a rotation: zero-mean rows have a mean then.
streams::Form rotated_form(streams::Form form);
// Sets that form in the layout, and the rotation of the basis "hadamard:SEED", "haar:SEED" or a file
// (streams/rotation.h). Throws as check_rotatable() and check_layout(), and UsageError if the seed is not a number.
void rotate(streams::Placement& layout, const TensorMap& outline, const std::string& basis);

}  // namespace isonorm::services
