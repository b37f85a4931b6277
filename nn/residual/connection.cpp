#include "nn/residual/connection.h"

#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

Connection::Connection(int64_t width, const ConnectionOptions& o)
    : Norm(width, {.kind = o.kind, .eps = o.eps},
           {.eps = o.eps, .affine = o.affine && (o.keeps_gain || !o.folded), .bias = o.bias}),
      precision_(o.precision),
      keeps_gain_(o.keeps_gain) {}

Tensor Connection::rows(Residual& r) {
  const DType dtype = precision_.branch_dtype(r.stream.dtype());
  const Tensor x = read(r).to(dtype);
  return hands_ ? hands_(x) : x;
}

}  // namespace isonorm::nn
