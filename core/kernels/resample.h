// The slot that resizes images on the CPU. Other devices compose resizing from index kernels
// (autograd/ops/interpolate.cpp).
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// A linear map along one direction, as a sparse matrix by rows: result i is the sum of weights[t] x[ids[t]] over t from
// starts[i] to starts[i + 1] - 1. starts i64 [results + 1], ids i64 and weights f64 [starts[results]].
struct Taps {
  Tensor starts, ids, weights;
  static auto tensors(auto& t) { return std::tie(t.starts, t.ids, t.weights); }
};

namespace cpu {
template <Isa I> void resample(const Tensor& y, const Tensor& x, const Taps& rows, const Taps& columns);
}  // namespace cpu

// y [images, results of rows, results of columns, channels] = x [images, height, width, channels] mapped along the
// height, then along the width. Contiguous, f32 or f64. ids must be inside of x.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Taps&, const Taps&)> resample{
    "interpolate", []<Isa I>() { return &cpu::resample<I>; }};

}  // namespace isonorm::kernels
