// Images that are shifted and mirrored at random, as a training sees them.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace isonorm::data {

struct Augmentation {
  int64_t crop =
      0;  // largest shift in pixels, up or down and left or right: a random crop of an image with such a border
  bool flip = false;  // left and right change places in half of the images

  bool any() const { return crop > 0 || flip; }
};

// Shifts and mirrors each of the images, floating [rows, height, width, colours], contiguous, on the CPU, in place; `background` is what comes in from
// beside them. What happens to a row depends on seed, step, the number of rows and its place alone. Throws where crop is not from 0 to below both sides.
void augment(const Tensor& images, const Augmentation& how, double background, uint64_t seed, int64_t step);

}  // namespace isonorm::data
