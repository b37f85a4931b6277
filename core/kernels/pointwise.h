// Kernel slots (kernel.h) of pointwise kernels. `op` is the position of the op in its list in
// core/formulas/pointwise.h.
#pragma once

#include "core/formulas/pointwise.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

struct Numbers {
  double p[2] = {};
};

namespace cpu {
template <Isa I> void unary(int op, const Tensor& out, const Tensor& x, Numbers numbers);
template <Isa I> void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, Numbers numbers);
template <Isa I> void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b);
template <Isa I> void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b);
template <Isa I> void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);
}  // namespace cpu

// out = f(x), of the same shape and floating dtype.
inline constinit Kernel<void(int, const Tensor&, const Tensor&, Numbers)> unary{"unary",
                                                                                []<Isa I>() { return &cpu::unary<I>; }};
// dx = g df(saved); dx may be g.
inline constinit Kernel<void(int, const Tensor&, const Tensor&, const Tensor&, Numbers)> unary_backward{
    "unary_backward", []<Isa I>() { return &cpu::unary_backward<I>; }};
// out = f(a, b); a and b broadcast to out's shape; one floating dtype, or i64.
inline constinit Kernel<void(int, const Tensor&, const Tensor&, const Tensor&)> binary{
    "binary", []<Isa I>() { return &cpu::binary<I>; }};
// out (u8) = a < b and the other comparisons. a and b broadcast and have one dtype (any).
inline constinit Kernel<void(int, const Tensor&, const Tensor&, const Tensor&)> compare{
    "compare", []<Isa I>() { return &cpu::compare<I>; }};
// out = a if condition (u8) is not 0, else b. All broadcast to out's shape.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&)> where{
    "where", []<Isa I>() { return &cpu::where<I>; }};

}  // namespace isonorm::kernels
