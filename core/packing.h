// Weights that many products read, packed once.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// Keeps a packed copy of `weight` [out, in] with it, or lets go of it: linear() and mlp() read that instead of packing the
// weight in every call, with the same bits, until the weight is written to. It takes as much memory as the weight. Does
// nothing for a dtype or a device whose products do not pack, for a bf16 weight of an odd number of columns, and for a view.
void keep_packed(const Tensor& weight, bool on = true);

}  // namespace isonorm
