// Internal: reads PNG files with libpng. Gamma, colour profiles and transparency are ignored: samples keep their stored
// values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor.h"

namespace isonorm::data {

// Decodes the file as read_picture() (io/data/picture.h). warning: gets libpng's first warning, or becomes empty.
Tensor read_png(std::span<const uint8_t> file, std::string& warning);

}  // namespace isonorm::data
