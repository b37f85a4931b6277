// Tensors as a tree by the parts of their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "io/half.h"

namespace isonorm::tools {

// "1,234,567".
std::string with_commas(int64_t n);

// A line for all, with their bytes, and one for each part of a name: how many numbers it has, its own tensors with their shapes.
// Parts that are numbers come in their order, then the others in the order of the map. Consecutive numbers that are alike share
// a line, "0 to 11". `foreign`: dtypes of a file that ours stand for.
std::vector<std::string> tree_of(const TensorMap& outline, const io::ForeignTypes& foreign = {});

}  // namespace isonorm::tools
