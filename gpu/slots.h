// The functions that start_cuda() binds to the slots of core/kernels, by the slot's file, and how kernels reach the
// bytes of tensors.
#pragma once

#include <cstdint>

#include "core/kernels/pointwise.h"
#include "core/tensor.h"

namespace isonorm::gpu {

template <class T> T* write(const Tensor& t) { return t.mutable_data<T>(); }
template <class T> T* write_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }
template <class T> const T* read_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
// Whether all of them can be read by 16 bytes; null can.
inline bool aligned(const auto*... p) { return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...); }

// kernels/copy.cu
void copy(const Tensor& dst, const Tensor& src);

// kernels/create.cu
void fill(const Tensor& dst, double value);

// kernels/unary.cu
void unary(int op, const Tensor& out, const Tensor& x, kernels::Numbers numbers);
void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, kernels::Numbers numbers);

// kernels/binary.cu
void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);

}  // namespace isonorm::gpu
