// Kernel slots (kernel.h) of reductions over the middle dimension of a contiguous [outer, length, inner] array.
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
template <Isa I> void sum_blocks(const Tensor& out, const Tensor& blocks, int64_t parts, int64_t ranks);
}  // namespace cpu

// out[outer, inner] = sum, max, min or product over length. NaN wins in max and min. An empty sum is 0, an empty
// product 1; the caller must refuse empty max and min. Floating or i64.
inline constinit Kernel<void(ReduceOp, ReduceShape, const Tensor&, const Tensor&)> reduce{
    "reduce", []<Isa I>() { return &cpu::reduce<I>; }};
// index[outer, inner] (i64) = position of the first largest element. NaN counts as largest. Floating or i64.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&)> arg_max{
    "argmax", []<Isa I>() { return &cpu::arg_max<I>; }};
// out = running sum along length, from the end if `reverse`. It never decreases if the numbers are >= 0. Floating or
// i64.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&, bool)> cumsum{
    "cumsum", []<Isa I>() { return &cpu::cumsum<I>; }};
// out = x minus its mean over length; out may be x.
inline constinit Kernel<void(ReduceShape, const Tensor&, const Tensor&)> recentre{
    "recentre", []<Isa I>() { return &cpu::recentre<I>; }};
// out [block] = the sum of blocks [parts, ranks, block], added in order of ranks, then of parts, in the accumulation
// type, and rounded once: a sum has the same bits on every device and instruction set. Contiguous, any dtype; out may
// be the first block.
inline constinit Kernel<void(const Tensor&, const Tensor&, int64_t, int64_t)> sum_blocks{
    "sum_blocks", []<Isa I>() { return &cpu::sum_blocks<I>; }};

}  // namespace isonorm::kernels

namespace isonorm::detached {

// Sums, products, maxima and minima over any dimensions, without graph: a new tensor of `shape`: the sum, product,
// maximum or minimum of x along `dims`. x is f32, f64 or bf16, for a sum also i64. `shape` is x's shape without those
// dimensions, or with sizes of 1 in their place. bf16 elements are combined in f32. Copies x first if it is not
// contiguous, or if a kept dimension is between two reduced ones. An empty sum is 0, an empty product 1; the caller
// must refuse an empty maximum. Throws "op: ..." if a product of sizes overflows int64.
Tensor reduce(kernels::ReduceOp kind, const Tensor& x, DimSet dims, const Dims& shape, const char* op);

// x summed to `shape`, which broadcasts to x's shape: sums along the dimensions that were stretched.
Tensor sum_to(const Tensor& x, const Dims& shape, const char* op);

}  // namespace isonorm::detached
