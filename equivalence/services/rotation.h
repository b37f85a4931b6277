// Rotation of a stream into another basis.
#pragma once

#include <string>

#include "core/tensor_map.h"
#include "streams/placement.h"

namespace isonorm::services {

// The file named by --basis; empty if --basis names a kind of basis.
std::string basis_file(const std::string& basis);
// Rotates the stream of a layout by the basis "hadamard:SEED", "haar:SEED" or a file (streams/rotation.h). Zero-mean rows
// have a mean then, so the form becomes uncentred(). Throws as check_rotatable() and check_layout(), and UsageError if
// SEED is not a number.
void rotate(streams::Placement& layout, const TensorMap& outline, const std::string& basis);

}  // namespace isonorm::services
