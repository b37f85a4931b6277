// Slots of reductions over the middle dimension of a contiguous [outer, length, inner] array.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

enum class ReduceOp { sum, max, min, product };

struct ReduceShape {
  int64_t outer, length, inner;
};

namespace cpu {
template <Isa I> void reduce(ReduceOp kind, ReduceShape shape, const Tensor& out, const Tensor& x);
template <Isa I> void arg_max(ReduceShape shape, const Tensor& index, const Tensor& x);
template <Isa I> void cumsum(ReduceShape shape, const Tensor& out, const Tensor& x, bool reverse);
template <Isa I> void recentre(ReduceShape shape, const Tensor& out, const Tensor& x);
}  // namespace cpu

// out[outer, inner] = sum, max, min or product over length. NaN wins in max and min. The sum of nothing is 0, its product
// 1; max and min of nothing are the caller's to refuse. Floating, and i64 for sum.
inline constinit Kernel<void(ReduceOp, ReduceShape, const Tensor&, const Tensor&)> reduce{
    "reduce", []<Isa I>() { return &cpu::reduce<I>; }};
// index[outer, inner] (i64) of the first largest element; NaN counts as largest.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&)> arg_max{
    "argmax", []<Isa I>() { return &cpu::arg_max<I>; }};
// out = running sum along length, from the end where reverse; of numbers from 0 on it never falls.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&, bool)> cumsum{
    "cumsum", []<Isa I>() { return &cpu::cumsum<I>; }};
// out = x minus its mean over length; out may be x.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&)> recentre{
    "recentre", []<Isa I>() { return &cpu::recentre<I>; }};

}  // namespace isonorm::kernels
