// bf16 attention by cuDNN, if it is present and takes the shape: heads of up to 256 elements in packs of 16 bytes, no
// mask except the causal one from the first key. Otherwise the kernels of this library compute it.
#pragma once

#include "core/kernels/attention.h"

namespace isonorm::gpu {

// True if the computation was started. Queries and keys must not be empty.
bool attention_forward_library(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                               const kernels::AttentionInputs& in);
bool attention_backward_library(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                                const kernels::AttentionSaved& saved);

}  // namespace isonorm::gpu
