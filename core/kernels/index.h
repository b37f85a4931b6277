// Slots that move rows and elements to and from positions held in tensors of i64. All tensors are contiguous. A caller
// asks check_ids first (core/kernels/checks.h): the CPU's kernels rely on it; a device's, which may run before what it
// found is thrown, give zeros for positions that are outside, and add nothing to anything from there.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// An array seen as [outer, length, inner]; positions are along length.
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
// dx[o, i, :] = sum of g[o, j, :] over j with ids[j] = i, in the order of j whatever the number of threads. dx of acc
// dtype, every element is written. Floating or i64.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> add_rows{"add_rows",
                                                                                                &cpu::add_rows};

// out[o, j, i] = x[o, index[o, j, i], i]; any dtype.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> gather{"gather", &cpu::gather};
// dx[o, index[o, j, i], i] += g[o, j, i] from 0, in the order of j. dx of acc dtype, every element is written. Floating
// or i64.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> gather_backward{
    "gather_backward", &cpu::gather_backward};

// y[o, index[o, j, i], i] = src[o, j, i], of the last j where there are several; any dtype.
inline constinit Kernel<void(IndexShape, const Tensor&, const Tensor&, const Tensor&)> scatter{"scatter",
                                                                                               &cpu::scatter};

// index[r, 0..k) = positions of the k largest of row x[r, :], largest first; NaN counts as largest, of equals the
// earlier comes first. Any dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&)> topk{"topk", &cpu::topk};

// out[r, s] = the first j with sorted[r, j] > values[r, s]; where there is none, the first j whose entry equals the
// last. f64, rows ascending and not empty.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&)> search_sorted{"search_sorted",
                                                                                         &cpu::search_sorted};

}  // namespace isonorm::kernels
