#include "nn/residual/residual.h"

#include "autograd/ops/masters.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

Residual& Residual::operator+=(const Tensor& branch) {
  settle();
  pending = branch;
  return *this;
}

const Tensor& Residual::settle() {
  if (!pending.defined()) return stream;
  const bool narrow = detail::fits_rows(stream.dtype(), pending.dtype());  // a branch of bf16, a stream of f32
  stream = stream + (narrow ? pending.to(stream.dtype()) : pending), pending = {};
  return stream;
}

}  // namespace isonorm::nn
