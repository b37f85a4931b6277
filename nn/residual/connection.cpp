#include "nn/residual/connection.h"

#include "autograd/ops/masters.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

const Tensor& Residual::settle() {
  if (!pending.defined()) return stream;
  const bool narrow = detail::fits_rows(stream.dtype(), pending.dtype());  // a branch of bf16, a stream of f32
  stream = stream + (narrow ? cast(pending, stream.dtype()) : pending), pending = {};
  return stream;
}

Tensor Connection::rows(Residual& r) {
  const DType dtype = stream_.precision().branch_dtype(r.stream.dtype());
  return cast(read(r), dtype);
}

}  // namespace isonorm::nn
