#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

Tensor PreNorm::read(Residual& r) {
  const DType dtype = precision().branch_dtype(r.stream.dtype());
  if (!r.pending.defined()) return normalize(r.stream, dtype);
  const auto [sum, rows] = add_normalize(r.stream, r.pending, dtype);
  r.stream = sum, r.pending = {};
  return rows;
}

void PreNorm::join(Residual& r, const Tensor& branch) {
  r.settle();
  r.pending = branch;
}

}  // namespace isonorm::nn
