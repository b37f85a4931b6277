#include "nn/residual/connection.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

Connection::Connection(int64_t width, const ConnectionOptions& o)
    : Norm(width, {.kind = o.kind, .eps = o.eps},
           {.eps = o.eps, .affine = o.affine && !(o.foldable && o.folded), .bias = o.bias}),
      precision_(o.precision),
      foldable_(o.foldable) {}

Tensor Connection::rows(Residual& r) {
  const DType dtype = precision_.branch_dtype(r.sum.dtype());
  const Tensor x = read(r).to(dtype);
  return gather_ ? gather_(x) : x;
}

}  // namespace isonorm::nn
