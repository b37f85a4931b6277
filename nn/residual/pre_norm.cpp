#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

Tensor PreNorm::read(Residual& r) {
  if (!r.pending.defined()) return normalize(r.stream);
  const auto [sum, rows] = add_normalize(r.stream, r.pending);
  r.stream = sum, r.pending = {};
  return rows;
}

void PreNorm::join(Residual& r, const Tensor& branch) {
  r.settle();
  r.pending = branch;
}

}  // namespace isonorm::nn
