#include "nn/residual/residual.h"

#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"

namespace isonorm::nn {

Residual& Residual::operator+=(const Tensor& branch) {
  check(branch.defined(), "residual +=: the branch is undefined, a Tensor that nothing was assigned to");
  settle();
  const Dims &shape = stream.shape(), &added = branch.shape();
  check(broadcast_shapes(added, shape, "residual +=") == shape, "residual +=: a branch of shape ", added,
        " does not stretch to the stream ", shape, ": reshape it, or sum over what the stream does not have");
  check(detail::fits_rows(stream.dtype(), branch.dtype()), "residual +=: the branch is ", branch.dtype(),
        ", the stream ", stream.dtype(), ": convert one with to()");
  pending = added == shape ? branch : expand(branch, shape);
  return *this;
}

const Tensor& Residual::settle() {
  if (!pending.defined()) return stream;
  const bool narrow = detail::fits_rows(stream.dtype(), pending.dtype());  // an f32 stream and a bf16 branch
  stream = stream + (narrow ? pending.to(stream.dtype()) : pending), pending = {};
  return stream;
}

}  // namespace isonorm::nn
