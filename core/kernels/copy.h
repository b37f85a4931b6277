// Slots that move elements on one device: copy with broadcast and conversion, fill.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void copy(const Tensor& dst, const Tensor& src);
template <Isa I> void fill(const Tensor& dst, double value);
}  // namespace cpu

// dst = src on one device; src broadcasts to dst's shape; any pair of dtypes (floating to integer truncates, i64 to
// u8 wraps).
inline constinit Kernel<void(const Tensor&, const Tensor&)> copy_on{"copy", []<Isa I>() { return &cpu::copy<I>; }};
inline constinit Kernel<void(const Tensor&, double)> fill_on{"fill", []<Isa I>() { return &cpu::fill<I>; }};

inline void copy(const Tensor& dst, const Tensor& src) {
  check(dst.device() == src.device(), "copy: from ", src.device(), " to ", dst.device(), " is not possible here");
  copy_on.on(dst.device(), dst, src);
}
inline void fill(const Tensor& dst, double value) { fill_on.on(dst.device(), dst, value); }

}  // namespace isonorm::kernels
