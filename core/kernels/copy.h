// Slots that copy elements on one device, with broadcast and conversion, and that fill; and the copy to another device.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void copy(const Tensor& dst, const Tensor& src);
template <Isa I> void round_each(std::span<const Tensor> dst, std::span<const Tensor> src);
template <Isa I> void fill(const Tensor& dst, double value);
}  // namespace cpu

// dst = src on one device. src broadcasts to dst's shape; any pair of dtypes (floating to integer truncates, i64 to u8
// wraps).
inline constinit Kernel<void(const Tensor&, const Tensor&)> copy_on{"copy", []<Isa I>() { return &cpu::copy<I>; }};
// dst[i] = src[i] for each i, rounded from f32 to bf16. Contiguous tensors of the same shape.
inline constinit Kernel<void(std::span<const Tensor>, std::span<const Tensor>)> round_each{
    "round_each", []<Isa I>() { return &cpu::round_each<I>; }};
inline constinit Kernel<void(const Tensor&, double)> fill_on{"fill", []<Isa I>() { return &cpu::fill<I>; }};

inline void copy(const Tensor& dst, const Tensor& src) { copy_on.on(dst.device(), dst, src); }
inline void fill(const Tensor& dst, double value) { fill_on.on(dst.device(), dst, value); }

// dst = src on different devices: contiguous, of the same shape and dtype, not empty. The copy comes after earlier work
// of the source's device and before later work of the destination's device. When it returns, a tensor on the host may
// be read or written to. Raises dst's version. start_cuda() sets it. It is no Kernel, because a Kernel runs on one
// device.
using Transfer = void (*)(const Tensor& dst, const Tensor& src);
inline constinit Transfer transfer = nullptr;

// copy() between any two devices: packs on src's device, transfers in src's dtype, converts and broadcasts on dst's
// device. Used for things that the user asks for (item(), to_vector(), printing, copy_into(), to()). In a backward rule
// it would hide a mistake.
void copy_between(const Tensor& dst, const Tensor& src);

}  // namespace isonorm::kernels
