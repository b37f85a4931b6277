// Internal: JPEG files of 1, 3 or 4 components, by libjpeg-turbo: baseline, progressive or arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/tensor.h"

namespace isonorm::data {

// Decodes the file as read_picture() does (io/data/picture.h). warning: gets libjpeg-turbo's first warning, or becomes
// empty.
Tensor read_jpeg(std::span<const uint8_t> file, std::string& warning);

}  // namespace isonorm::data
