// A text made from a seed, for a training that needs no file.
#pragma once

#include <cstdint>
#include <string>

namespace isonorm::data {

// `length` bytes of short sentences over a small vocabulary, in lower case; depends on the arguments alone. A
// small model learns spelling and word order from it within a hundred steps. Throws where length is negative.
std::string made_text(uint64_t seed, int64_t length);

}  // namespace isonorm::data
