// Slots of GELU after a bias: contiguous [rows, width] tensors of one floating dtype.
#pragma once

#include "core/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// The bias gradient is summed in blocks of rows that depend on the shape alone, and these are added up in order.
inline int64_t bias_gelu_block_rows(int64_t rows) { return std::max<int64_t>(16, (rows + 31) / 32); }
inline int64_t bias_gelu_blocks(int64_t rows) {
  return (rows + bias_gelu_block_rows(rows) - 1) / bias_gelu_block_rows(rows);
}

namespace cpu {
template <Isa I> void bias_gelu(const Tensor& y, const Tensor& x, const Tensor& bias, bool tanh_form);
template <Isa I>
void bias_gelu_backward(const Tensor& dx, const Tensor& dbias, const Tensor& partial, const Tensor& dy, const Tensor& x,
                        const Tensor& bias, bool tanh_form);
}  // namespace cpu

// y = gelu(x + bias) or gelu_tanh(x + bias)
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, bool)> bias_gelu{
    "bias_gelu", []<Isa I>() { return &cpu::bias_gelu<I>; }};
// dx = dy gelu'(x + bias); dbias its sum over rows. partial: scratch [bias_gelu_blocks(rows), width] of acc dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             bool)>
    bias_gelu_backward{"bias_gelu_backward", []<Isa I>() { return &cpu::bias_gelu_backward<I>; }};

}  // namespace isonorm::kernels
