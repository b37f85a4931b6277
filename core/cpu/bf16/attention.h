// bf16 attention, for machines with products of bf16 (products.h).
#pragma once

#include "core/kernels/attention.h"

namespace isonorm::kernels::cpu {

// Like the slots attention_forward and attention_backward. All tensors are bf16, except the sums.
void attention_forward_bf16(AttentionSpec spec, const Tensor& out, const AttentionSums& sums,
                            const AttentionInputs& in);
void attention_backward_bf16(AttentionSpec spec, const AttentionGradients& out, const AttentionSaved& in);

}  // namespace isonorm::kernels::cpu
