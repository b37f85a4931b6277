// Tensors as a tree by the parts of their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "io/half.h"

namespace isonorm::io {

// "1,234,567".
std::string with_commas(int64_t n);

// One line for all tensors with their bytes, and one line for each part of a name: its count of numbers, and its own
// tensors with their shapes. Parts that are numbers come first, in numeric order; the others follow in the map's order.
// Consecutive numbers with the same tensors share a line, "0 to 11". `foreign`: dtypes in the file, for tensors that
// have another one here.
std::vector<std::string> tree_of(const TensorMap& outline, const io::ForeignTypes& foreign = {});

}  // namespace isonorm::io
