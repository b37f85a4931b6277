// Slots that move elements on one device: copy with broadcast and conversion, fill; and what moves them to another one.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void copy(const Tensor& dst, const Tensor& src);
template <Isa I> void round_each(std::span<const Tensor> dst, std::span<const Tensor> src);
template <Isa I> void fill(const Tensor& dst, double value);
}  // namespace cpu

// dst = src on one device; src broadcasts to dst's shape; any pair of dtypes (floating to integer truncates, i64 to
// u8 wraps).
inline constinit Kernel<void(const Tensor&, const Tensor&)> copy_on{"copy", []<Isa I>() { return &cpu::copy<I>; }};
// dst[i] = src[i] for each i, f32 rounded to bf16: contiguous, of one shape.
inline constinit Kernel<void(std::span<const Tensor>, std::span<const Tensor>)> round_each{
    "round_each", []<Isa I>() { return &cpu::round_each<I>; }};
inline constinit Kernel<void(const Tensor&, double)> fill_on{"fill", []<Isa I>() { return &cpu::fill<I>; }};

inline void copy(const Tensor& dst, const Tensor& src) { copy_on.on(dst.device(), dst, src); }
inline void fill(const Tensor& dst, double value) { fill_on.on(dst.device(), dst, value); }

// dst = src where they lie on two devices: contiguous, of one shape and dtype, not empty. It follows what was asked of
// the source's device before, and what is asked of the destination's later follows it. When it returns, a tensor on the
// host may be read, or written to. It raises dst's version. start_cuda() sets it; no Kernel, since those run on one
// device.
using Transfer = void (*)(const Tensor& dst, const Tensor& src);
inline constinit Transfer transfer = nullptr;

// copy() that may lead to another device: packs where src is, transfers src's dtype, converts and broadcasts where dst
// is. For what a user asks for (item(), to_vector(), printing, copy_into(), to()); in a rule it would hide a mistake.
void copy_between(const Tensor& dst, const Tensor& src);

}  // namespace isonorm::kernels
