// A text made from a seed, for a training that needs no file.
#pragma once

#include <cstdint>
#include <string>

namespace isonorm::data {

// `length` bytes of short lower-case sentences over a small vocabulary; depends only on the arguments. A small model
// learns spelling and word order from it within a hundred steps. Throws if length is negative.
std::string made_text(uint64_t seed, int64_t length);

}  // namespace isonorm::data
