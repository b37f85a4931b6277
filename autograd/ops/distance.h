// Distances and angles between vectors, defined as in PyTorch. Floating tensors of the same dtype; bf16 is computed in
// f32.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// Euclidean distance of every row of a to every row of b: a [..., n, width], b [..., m, width] -> [..., n, m]; leading
// dimensions broadcast. The gradient at distance 0 is 0. Needs memory for n m width numbers. Throws if widths or dtypes
// differ, or if a or b has no rows (rank below 2).
Tensor cdist(const Tensor& a, const Tensor& b);

// a . b / (max(|a|, eps) max(|b|, eps)) along dim, which is reduced; a and b broadcast. Throws if dtypes differ.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int dim = 1, double eps = 1e-8);

}  // namespace isonorm
