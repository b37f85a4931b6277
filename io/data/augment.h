// Images that are shifted, mirrored and mixed at random, as a training sees them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace isonorm::data {

struct Augmentation {
  int64_t crop =
      0;  // largest shift in pixels, up or down and left or right: a random crop of an image with such a border
  bool flip = false;  // left and right change places in half of the images

  bool any() const { return crop > 0 || flip; }
};

// Shifts and mirrors each of the images, floating [rows, height, width, colours], contiguous, on the CPU, in place. Pixels from
// beside an image have the value `background`: one number for all colours, or one for each. The change of a row depends on seed,
// step, the number of rows and its place alone. Throws if crop is not from 0 to below both sides.
void augment(const Tensor& images, const Augmentation& how, const std::vector<double>& background, uint64_t seed,
             int64_t step);

struct Mixup {
  double alpha = 0;     // 0: none
  int64_t classes = 0;  // of the labels
};

// Mixup (Zhang et al., 1710.09412): each image of a batch, floating [rows, ...], contiguous, on the CPU, becomes in place lambda times
// itself plus 1 - lambda times the next one, the last with the first. (A sampler that shuffles draws which one is next.) lambda, from
// Beta(alpha, alpha), is one number a batch and depends on seed and step alone. Returns the targets, mixed likewise: distributions
// [rows, classes] of the images' dtype, for labels i64 [rows]. cross_entropy() of them is lambda times that of the labels plus 1 - lambda
// times that of the partners' labels. Throws where alpha is not positive and finite, or a label is not from 0 to below classes.
Tensor mix(const Tensor& images, const Tensor& labels, const Mixup& how, uint64_t seed, int64_t step);

}  // namespace isonorm::data
