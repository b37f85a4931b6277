// Pictures as tensors.
#pragma once

#include <string>

#include "core/tensor.h"

namespace isonorm::data {

inline constexpr int64_t kMostPixels = int64_t{1} << 26;  // of a picture that is read

// The picture in a PNG or JPEG file, which its first bytes tell: u8 [height, width, 3], red, green, blue; grey levels are in all
// three, and how transparent a pixel is does not count. Throws Error where the file cannot be read (io), is neither or is damaged, or has
// more than kMostPixels. Decoded by libpng and libjpeg-turbo.
Tensor read_picture(const std::string& path);

// The square in the middle of an image u8 [height, width, colours], scaled to u8 [side, side, colours]: each pixel a mean with
// weights that fall linearly to 0 one pixel of the coarser of both grids away, as of PIL's resize by BILINEAR. Throws where a
// size is 0.
Tensor square_of(const Tensor& image, int64_t side);

}  // namespace isonorm::data
