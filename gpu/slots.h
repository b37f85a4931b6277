// The functions that start_cuda() binds to the slots of core/kernels, by the slot's file, and how kernels reach the
// bytes of tensors.
#pragma once

#include <cstdint>

#include "core/kernels/mlp.h"
#include "core/tensor.h"

namespace isonorm::gpu {

template <class T> T* write(const Tensor& t) { return t.mutable_data<T>(); }
template <class T> T* write_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }
template <class T> const T* read_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
// Whether all of them can be read by 16 bytes; null can.
inline bool aligned(const auto*... p) { return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...); }

// kernels/create.cu
void fill(const Tensor& dst, double value);

// libraries/blas.cpp
void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from);
void weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add);
void keep_packed(const Tensor& w);

// kernels/mlp.cu
void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const kernels::MlpWeights& weights, bool tanh_form);
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const kernels::MlpWeights& weights, bool tanh_form);

}  // namespace isonorm::gpu
