// Tensors that do not begin at a multiple of 16 bytes. Kernels read such tensors element by element.
#pragma once

#include "core/tensor.h"
#include "core/view.h"

namespace isonorm::test {

// A contiguous copy of x that begins one element after a multiple of 16 bytes.
inline Tensor shifted(const Tensor& x) {
  const Tensor room = empty({x.numel() + 1}, x.options());
  const Tensor y = detached::reshape(detached::narrow(room, 0, 1, x.numel()), x.shape());
  copy_into(y, x);
  return y;
}

}  // namespace isonorm::test
