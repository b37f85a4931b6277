// Packs a weight once for many products.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// Keeps a packed copy of `weight` [out, in], or releases it if `on` is false. Until the weight is written to, linear()
// and mlp() read the copy instead of packing the weight in every call; results have the same bits. The copy takes as
// much memory as the weight. Does nothing for a view, for a dtype or a device whose products do not pack, and for a
// bf16 weight with an odd number of columns. Throws if the weight is not a matrix.
void keep_packed(const Tensor& weight, bool on = true);

}  // namespace isonorm
