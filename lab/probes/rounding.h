// A model of arithmetic that rounds, computed in f64: every result gets an error of its own, of the size of rounding to
// a dtype. It predicts how far correct arithmetic is from the truth.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace isonorm::equivalence {

// The root mean square of a rounding error, relative to the number and in units of eps. The error of a number 1 <= m <
// 2 is uniform on +-eps/2, so its root mean square is eps/sqrt(12). The mean of 1/m^2 over a mantissa with density 1/(m
// ln 2) is 3/(8 ln 2). Together: sqrt(3/(96 ln 2)).
inline constexpr double kRoundingError = 0.21233;

// Independent errors, in f64: to first order the errors of arithmetic in `dtype`.
//   f64, f32  every result of an elementary operation is rounded; a sum of n terms that is taken one after the other
//             has the error of its n - 1 partial sums. Its root mean square is at most
//             kRoundingError sqrt(n/3 (s^2 + sum of squared terms)) with the sum s: terms of one sign give the first
//             part, independent terms the second
//   bf16      sums are taken in f32, and an op rounds its result once: only that rounding counts
class Rounding {
 public:
  Rounding() = default;  // rounds nothing
  Rounding(DType dtype, Generator generator);

  // x rounded; its gradient is rounded in the backward, too.
  Tensor operator()(const Tensor& x) { return value(gradient_of(x)); }
  Tensor value(const Tensor& x);
  // Rounds only in f64 and f32: for a step inside a fused op.
  Tensor inside(const Tensor& x) { return inside_ ? (*this)(x) : x; }
  // x, with its gradient rounded. An op that reads x: its contribution is rounded before it is added to the
  // others'.
  Tensor gradient_of(const Tensor& x);
  // x W^T + b, with its gradients.
  Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
  // The sum along the last dimension, kept.
  Tensor row_sum(const Tensor& x);

 private:
  Tensor error(const Tensor& of);
  Tensor error_of_sum(const Tensor& sum, const Tensor& squares, int64_t terms);

  double eps_ = 0;
  bool inside_ = false;
  Generator generator_;
};

}  // namespace isonorm::equivalence
