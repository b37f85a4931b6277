// Data augmentation of images: random crop, horizontal flip, mixup.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace isonorm::data {

struct Augmentation {
  int64_t crop =
      0;  // largest shift in pixels, vertical and horizontal: a random crop of the image padded by this border
  bool flip = false;  // mirrors each image horizontally with probability 1/2

  bool any() const { return crop > 0 || flip; }
};

// Shifts and mirrors images, floating [rows, height, width, channels], contiguous, on the CPU, in place. Pixels from
// outside of the image get the value `background`: one number for all channels, or one for each channel. The change of
// a row depends only on seed, step, the number of rows and the row's index. Throws if crop is negative, or not smaller
// than both sides.
void augment(const Tensor& images, const Augmentation& how, const std::vector<double>& background, uint64_t seed,
             int64_t step);

struct Mixup {
  double alpha = 0;     // 0: no mixup
  int64_t classes = 0;  // number of classes
};

// Mixup (Zhang et al., 1710.09412). images: floating [rows, ...], contiguous, on the CPU. Replaces image i by lambda
// image_i + (1 - lambda) image_(i+1), in place; the last image is mixed with the first. (A sampler that shuffles makes
// the partners random.) lambda, from Beta(alpha, alpha), is one number per batch and depends only on seed and step.
// Returns the mixed targets: distributions [rows, classes] of the images' dtype for labels i64 [rows]. Their
// cross_entropy() is lambda times the loss with the labels plus 1 - lambda times the loss with the partners' labels.
// Throws if alpha is not positive and finite, or if a label is not in [0, classes).
Tensor mix(const Tensor& images, const Tensor& labels, const Mixup& how, uint64_t seed, int64_t step);

}  // namespace isonorm::data
