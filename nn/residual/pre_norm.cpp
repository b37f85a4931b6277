#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

Tensor PreNorm::read(Residual& r) { return (*this)(r, precision().branch_dtype(r.stream.dtype())); }

void PreNorm::join(Residual& r, const Tensor& branch) { r += branch; }

}  // namespace isonorm::nn
