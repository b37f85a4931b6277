// Slots that move rows and elements to and from positions held in i64 tensors. All tensors are contiguous. The caller
// runs check_ids first (core/kernels/checks.h). The CPU's kernels rely on it. A device's kernels may run before a
// violation is thrown: for positions outside, they write zeros and add nothing.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// An array viewed as [outer, length, inner]; positions are along length.
struct IndexShape {
  int64_t outer, length, inner;
};

namespace cpu {
void take_rows(IndexShape shape, const Tensor& out, const Tensor& x, const Tensor& ids);
void add_rows(IndexShape shape, const Tensor& dx, const Tensor& g, const Tensor& ids);
void gather(IndexShape shape, const Tensor& out, const Tensor& x, const Tensor& index);
void gather_backward(IndexShape shape, const Tensor& dx, const Tensor& g, const Tensor& index);
void scatter(IndexShape shape, const Tensor& y, const Tensor& src, const Tensor& index);
void topk(const Tensor& index, const Tensor& x);
void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values);
}  // namespace cpu

// out[o, j, :] = x[o, ids[j], :], ids [m]; any dtype.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> take_rows{"take_rows",
                                                                                                 &cpu::take_rows};
// dx[o, i, :] = sum of g[o, j, :] over j with ids[j] = i, in the order of j for any number of threads. dx has acc
// dtype; every element is written. Floating or i64.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> add_rows{"add_rows",
                                                                                                &cpu::add_rows};

// out[o, j, i] = x[o, index[o, j, i], i]; any dtype.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> gather{"gather", &cpu::gather};
// dx[o, index[o, j, i], i] += g[o, j, i], starting from 0, in the order of j. dx has acc dtype; every element is
// written. Floating or i64.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> gather_backward{
    "gather_backward", &cpu::gather_backward};

// y[o, index[o, j, i], i] = src[o, j, i]; the last j wins if several have the same index. Any dtype.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> scatter{"scatter",
                                                                                               &cpu::scatter};

// index[r, 0..k) = positions of the k largest of row x[r, :], largest first. NaN counts as largest; equal elements keep
// their order. Any dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&)> topk{"topk", &cpu::topk};

// out[r, s] = the first j with sorted[r, j] > values[r, s]; if there is none, the first j whose entry equals the last
// entry. f64, rows ascending and not empty.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&)> search_sorted{"search_sorted",
                                                                                         &cpu::search_sorted};

}  // namespace isonorm::kernels
