// Kernel slots (kernel.h) of softmax and of cross-entropy, over the last dimension of contiguous [rows, width] tensors.
#pragma once

#include "core/formulas/hd.h"
#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

namespace cpu {
template <Isa I> void softmax(const Tensor& out, const Tensor& x, bool log);
template <Isa I> void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log);
}  // namespace cpu

// out = e^(x - m) / sum e^(x - m) with m the row's maximum; if `log`, its logarithm.
inline constinit Kernel<void(const Tensor&, const Tensor&, bool)> softmax{"softmax",
                                                                          []<Isa I>() { return &cpu::softmax<I>; }};
// From the result y: dx = y (g - sum g y); if `log`, dx = g - e^y sum g.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, bool)> softmax_backward{
    "softmax_backward", []<Isa I>() { return &cpu::softmax_backward<I>; }};

// Kernel slots (kernel.h) of cross-entropy by rows. Forward keeps two numbers per row for backward.

// Rows whose target is `ignored` do not count. `smoothing` is the share of the target's weight that is spread over all
// classes.
struct CrossEntropySpec {
  int64_t ignored;
  double smoothing;

  // The factor for the sum of the losses of `rows` rows. A mean over no rows is 0, and so are its gradients.
  template <class T> ISO_HD static T scale(int64_t rows, bool mean) {
    using A = acc_t<T>;
    return T(!mean ? A(1) : rows > 0 ? 1 / static_cast<A>(rows) : A(0));
  }
};

namespace cpu {
template <Isa I>
void cross_entropy(const Tensor& losses, const Tensor& stats, const Tensor& logits, const Tensor& target,
                   CrossEntropySpec spec);
template <Isa I>
void cross_entropy_backward(const Tensor& dlogits, const Tensor& g, const Tensor& logits, const Tensor& target,
                            const Tensor& stats, CrossEntropySpec spec);
template <Isa I>
void cross_entropy_and_gradient(const Tensor& losses, const Tensor& dlogits, const Tensor& g, const Tensor& logits,
                                const Tensor& target, CrossEntropySpec spec);
template <Isa I> void cross_entropy_scale(const Tensor& scale, const Tensor& target, int64_t ignored, bool mean);
template <Isa I> void cross_entropy_total(const Tensor& total, const Tensor& losses, const Tensor& scale);
}  // namespace cpu

// With a row x of c logits with maximum m, s = ln sum_j exp(x_j - m), e = smoothing and target t:
//
//   losses[r] = s - (1 - e) (x_t - m) - e/c sum_j (x_j - m), 0 for an ignored row;  stats[r] = (m, s)
//
// logits [n, c] contiguous, target [n] (i64); losses [n] and stats [n, 2] of acc dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, CrossEntropySpec)>
    cross_entropy{"cross_entropy", []<Isa I>() { return &cpu::cross_entropy<I>; }};

// dlogits[r, j] = g[r] (exp(x_j - m - s) - (1 - e) [j = t] - e/c), and 0 in an ignored row for any g. g [n] of acc
// dtype, any stride (0 for one number); dlogits may be the logits themselves.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             CrossEntropySpec)>
    cross_entropy_backward{"cross_entropy", []<Isa I>() { return &cpu::cross_entropy_backward<I>; }};

// losses and dlogits in one call, so that each row is read once. g is known beforehand, and no stats are kept.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             CrossEntropySpec)>
    cross_entropy_and_gradient{"cross_entropy", []<Isa I>() { return &cpu::cross_entropy_and_gradient<I>; }};

// scale[0] (f32 or f64) = CrossEntropySpec::scale for the number of rows that are not ignored.
inline constinit Kernel<void(const Tensor&, const Tensor&, int64_t, bool)> cross_entropy_scale{
    "cross_entropy", []<Isa I>() { return &cpu::cross_entropy_scale<I>; }};
// total[0] = scale[0] sum_r losses[r]. total has the logits' dtype, losses and scale its acc dtype.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&)> cross_entropy_total{
    "cross_entropy", []<Isa I>() { return &cpu::cross_entropy_total<I>; }};

}  // namespace isonorm::kernels
