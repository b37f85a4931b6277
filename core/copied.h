// A copy of a tensor.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// A tensor of its own with the same values, contiguous, outside of any graph.
inline Tensor copied(const Tensor& x) {
  const Tensor copy = empty_like(x);
  copy_into(copy, detach(x));
  return copy;
}

}  // namespace isonorm
