// The functions that start_cuda() binds to the slots of core/kernels, by the slot's file, and how kernels reach the
// bytes of tensors.
#pragma once

#include <cstdint>

#include "core/kernels/pointwise.h"
#include "core/kernels/rotary.h"
#include "core/random.h"
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
void ramp(const Tensor& out, double begin, double step);
void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower);

// kernels/unary.cu
void unary(int op, const Tensor& out, const Tensor& x, kernels::Numbers numbers);
void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, kernels::Numbers numbers);

// kernels/binary.cu
void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);

// kernels/random.cu
void uniform(const Tensor& out, double lo, double hi, Generator state);
void normal(const Tensor& out, double mean, double deviation, Generator state);
void exponential(const Tensor& out, Generator state);
void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state);
void bernoulli(const Tensor& out, double p, Generator state);
void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state);
void random_permutation(const Tensor& out, Generator state);
void dropout(const Tensor& out, const Tensor& x, double p, Generator state);

// kernels/rotary.cu
void rotary(kernels::RotaryShape shape, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine);

}  // namespace isonorm::gpu
