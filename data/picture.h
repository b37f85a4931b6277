// Pictures as tensors.
#pragma once

#include <string>

#include "core/tensor.h"

namespace isonorm::data {

inline constexpr int64_t kMostPixels = int64_t{1} << 26;  // pixels of a picture

// Reads a PNG or JPEG file. The first bytes tell which it is. Returns u8 [height, width, 3], in the order red, green,
// blue.
//
// PNG: samples are taken as stored; 16-bit samples are reduced to their high byte. Gamma and colour profiles (gAMA,
// iCCP, sRGB) are ignored. Alpha and tRNS are dropped, not composited. An animation (APNG) gives its default image.
// JPEG: CMYK and YCCK are converted to RGB as Pillow does. EXIF orientation is not applied, as in torchvision's
// ImageFolder.
// Grey levels are in all three colours. Bytes after the end of the picture are ignored.
//
// warning: gets the decoder's first warning about damage that it skipped; empty if there was none.
// Throws Error if the file cannot be read (io), or (invalid) if it has over 256 MiB, is neither PNG nor JPEG, is cut
// off or damaged, has more than kMostPixels or more pixels than its bytes can hold, or is a JPEG with too many scans:
// more than 500, or than 2^30 / pixels if that is less.
// Decoded by libpng and libjpeg-turbo.
Tensor read_picture(const std::string& path, std::string* warning = nullptr);

// The square in the middle of an image u8 [height, width, colours], scaled to u8 [side, side, colours]: each pixel a mean with
// weights that fall linearly to 0 one pixel of the coarser of both grids away, as of PIL's resize by BILINEAR. Throws where a
// size is 0.
Tensor square_of(const Tensor& image, int64_t side);

}  // namespace isonorm::data
