// Tensors that begin at no multiple of 16 bytes, for kernels that read those in another way.
#pragma once

#include "core/tensor.h"
#include "core/view.h"

namespace isonorm::test {

// The values of x, contiguous, one element behind an address that is a multiple of 16.
inline Tensor shifted(const Tensor& x) {
  const Tensor room = empty({x.numel() + 1}, x.options());
  const Tensor y = detached::reshape(detached::narrow(room, 0, 1, x.numel()), x.shape());
  copy_into(y, x);
  return y;
}

}  // namespace isonorm::test
