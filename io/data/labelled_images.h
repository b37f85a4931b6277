// Images with one class label each: the result of the readers of image sets.
#pragma once

#include "core/tensor.h"

namespace isonorm::data {

struct LabelledImages {
  Tensor images;  // u8 [n, height, width] of grey levels, or [n, height, width, colours]
  Tensor labels;  // i64 [n]

  int64_t size() const { return images.size(0); }
};

}  // namespace isonorm::data
