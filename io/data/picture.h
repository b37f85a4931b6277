// Pictures as tensors.
#pragma once

#include <string>

#include "core/tensor.h"

namespace isonorm::data {

inline constexpr int64_t kMostPixels = int64_t{1} << 26;  // limit for the pixels of a picture

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

// How a picture becomes a square image: resized, then cropped to the middle.
struct PictureFit {
  int64_t edge = 0;  // side after resizing, before the centre crop; 0: the side of the image, so nothing is cropped
  bool stretch =
      false;  // resizes the whole picture to a square, changing its aspect ratio; false: only its central square

  bool operator==(const PictureFit&) const = default;
};

// Resizes and crops a picture u8 [height, width, colours] -> u8 [side, side, colours]. Each pixel is a weighted mean.
// The weights fall linearly to 0 at one pixel of the coarser grid, as in PIL's resize with BILINEAR.
// Throws if a size is 0 or 0 < fit.edge < side.
Tensor square_of(const Tensor& image, int64_t side, const PictureFit& fit = {});

}  // namespace isonorm::data
