// Random tensors and functions. Each draws from `generator`, by default the calling thread's (core/random.h), and
// advances it by a number of blocks that depends only on shapes. The same seed gives the same bits for any number of
// threads and on every x86-64 machine; f32 and bf16 results are the rounded f64 results. Unless said otherwise, options
// default to {f32, CPU}, and a dtype that is not floating throws.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace isonorm {

// Uniform on [0, 1).
Tensor rand(const Dims& shape, TensorOptions options = {}, Generator& generator = default_generator());
// Uniform on [lo, hi), lo rounded to the dtype. Throws unless both are finite and lo < hi.
Tensor uniform(const Dims& shape, double lo, double hi, TensorOptions options = {},
               Generator& generator = default_generator());
// Normal with mean 0 and variance 1 (Box and Muller, 1958); magnitudes end at 8.57.
Tensor randn(const Dims& shape, TensorOptions options = {}, Generator& generator = default_generator());
// Like randn(), with x's shape, dtype and device.
inline Tensor randn_like(const Tensor& x, Generator& generator = default_generator()) {
  return randn(x.shape(), x.options(), generator);
}
// Exponential with rate 1: -ln(1 - u), u uniform; magnitudes end at 36.7.
Tensor exponential(const Dims& shape, TensorOptions options = {}, Generator& generator = default_generator());
// Normal with `mean` and standard `deviation`, conditioned on [lo, hi], by rejection; rounded to values inside. Throws
// unless deviation > 0 and [lo, hi] holds at least a thousandth of the distribution and a value of the dtype.
Tensor truncated_normal(const Dims& shape, double mean, double deviation, double lo, double hi,
                        TensorOptions options = {}, Generator& generator = default_generator());
// 1 with probability p, else 0; any dtype. Throws unless 0 <= p <= 1.
Tensor bernoulli(const Dims& shape, double p, TensorOptions options = {}, Generator& generator = default_generator());
// Integers in [lo, hi), i64. Throws unless lo < hi.
Tensor randint(int64_t lo, int64_t hi, const Dims& shape, Device device = kCpu,
               Generator& generator = default_generator());
// A random order of 0 .. n - 1, i64. Throws if n < 0.
Tensor randperm(int64_t n, Device device = kCpu, Generator& generator = default_generator());

// x with each element set to 0 with probability p and the others divided by 1 - p; x itself if not training or p = 0
// (Srivastava et al., "Dropout", 2014). Differentiable: the backward computes the mask again from the generator's
// position, so no mask is stored. Throws unless 0 <= p < 1.
Tensor dropout(const Tensor& x, double p, bool training = true, Generator& generator = default_generator());

// Positions [..., count] (i64) in the last dimension of `weights` [..., n], drawn with probability proportional to the
// weights, which need not sum to 1. With replacement: inverts the running sum. Without: each position at most once, in
// the order drawn, as the `count` largest weight / e with e exponential (Efraimidis and Spirakis, 2006). Not
// differentiable. Throws if a weight is negative or not finite, or if a row has fewer positive weights than it needs:
// 1, or `count` without replacement.
Tensor multinomial(const Tensor& weights, int64_t count, bool replacement = false,
                   Generator& generator = default_generator());

}  // namespace isonorm
