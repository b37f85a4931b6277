// The functions that start_cuda() binds to the slots of core/kernels, by the slot's file, and how kernels reach the
// bytes of tensors.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/attention.h"
#include "core/kernels/optimizer.h"
#include "core/tensor.h"

namespace isonorm::gpu {

template <class T> T* write(const Tensor& t) { return t.mutable_data<T>(); }
template <class T> T* write_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }
template <class T> const T* read_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
// Whether all of them can be read by 16 bytes; null can.
inline bool aligned(const auto*... p) { return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...); }

// kernels/create.cu
void fill(const Tensor& dst, double value);

// kernels/attention.cu
void attention_forward(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                       const kernels::AttentionInputs& in);
void attention_backward(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                        const kernels::AttentionSaved& saved);

// kernels/attention_bf16.cu: false where it has no kernel for what is asked
bool attention_forward_bf16(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                            const kernels::AttentionInputs& in);
bool attention_backward_bf16(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                             const kernels::AttentionSaved& saved);

// kernels/optimizer.cu
void update(std::span<const kernels::Update> updates);
void sum_squares(std::span<const Tensor> tensors, const Tensor& sums);
void scale(std::span<const Tensor> tensors, double factor);
void clamp(std::span<const Tensor> tensors, double limit);

}  // namespace isonorm::gpu
