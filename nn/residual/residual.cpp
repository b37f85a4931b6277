#include "nn/residual/residual.h"

#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"

namespace isonorm::nn {

Residual& Residual::operator+=(const Tensor& branch) {
  check(branch.defined(), "residual +=: the branch is undefined, a Tensor that nothing was assigned to");
  settle();
  const Dims &shape = sum.shape(), &added = branch.shape();
  check(broadcast_shapes(added, shape, "residual +=") == shape, "residual +=: a branch of shape ", added,
        " does not broadcast to the residual stream ", shape, ": reshape it, or sum over its extra dimensions");
  check(detail::fits_rows(sum.dtype(), branch.dtype()), "residual +=: the branch is ", branch.dtype(),
        ", the residual stream ", sum.dtype(), ": convert one with to()");
  pending = added == shape ? branch : expand(branch, shape);
  return *this;
}

const Tensor& Residual::settle() {
  if (!pending.defined()) return sum;
  const bool narrow = detail::fits_rows(sum.dtype(), pending.dtype());  // an f32 sum and a bf16 branch
  sum = sum + (narrow ? pending.to(sum.dtype()) : pending), pending = {};
  return sum;
}

}  // namespace isonorm::nn
