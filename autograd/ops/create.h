// New tensors: filled with given values, or copies. Functions that fill take options {dtype, device}, f32 on the CPU by
// default, and record no graph.
#pragma once

#include "core/tensor.h"

namespace isonorm {

// All elements are 0, 1 or `value`, converted to the dtype (towards zero for integers). Throw like empty(), and if an
// integer dtype cannot hold the value.
Tensor zeros(const Dims& shape, TensorOptions options = {});
Tensor ones(const Dims& shape, TensorOptions options = {});
Tensor full(const Dims& shape, Scalar value, TensorOptions options = {});

// The same with the shape, dtype and device of `like`; contiguous whatever its strides.
Tensor zeros_like(const Tensor& like);
Tensor ones_like(const Tensor& like);
Tensor full_like(const Tensor& like, Scalar value);

// [begin, begin + step, begin + 2 step, ...] up to and without `end`: ceil((end - begin) / step) elements, each
// computed as begin + i step in f64 and rounded once to the dtype. Any dtype. Throws if step is 0 or leads away from
// `end`, if an argument is not finite, or if an element of an integer dtype does not fit it or is not below 2^53.
Tensor arange(double begin, double end, double step = 1, TensorOptions options = {});
// [0, 1, ..., n - 1] as i64 (indices) by default. Throws if n < 0.
Tensor arange(int64_t n, TensorOptions options = {.dtype = DType::i64});

// `count` evenly spaced values from `begin` to `end`, both included (count 1: begin alone). Computed in f64 from the
// nearer end, so the last element is exactly `end`, and rounded once to the dtype. Floating dtypes. Throws if count < 0
// or an argument is not finite.
Tensor linspace(double begin, double end, int64_t count, TensorOptions options = {});

// [rows, columns] (columns = rows by default): 1 where row = column, 0 elsewhere. Any dtype. Throws if a size is
// negative.
Tensor eye(int64_t rows, int64_t columns = -1, TensorOptions options = {});

// x on `device`: x itself if it is there, else a contiguous copy of x's dtype. The gradient comes back to x's device.
// Any dtype. Throws if the program has no such device.
Tensor to(const Tensor& x, Device device);

// A contiguous copy of x with storage of its own; differentiable. Any dtype and device.
Tensor clone(const Tensor& x);

}  // namespace isonorm
