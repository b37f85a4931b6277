// Attention of bf16 by cuDNN, where it is there and takes the shape: heads of up to 256 elements in packs of 16 bytes, no
// mask but the causal one from the first key. Elsewhere nothing is taken, and the kernels of this library do it.
#pragma once

#include "core/kernels/attention.h"

namespace isonorm::gpu {

// Whether it was started. Queries and keys are not empty.
bool attention_forward_library(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                               const kernels::AttentionInputs& in);
bool attention_backward_library(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                                const kernels::AttentionSaved& saved);

}  // namespace isonorm::gpu
