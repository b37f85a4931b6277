// Pointwise functions. Tensors of any dtype; bf16 is computed in f32. Binary functions broadcast. All throw if shapes
// do not broadcast, or if two floating dtypes differ. The formulas are the structs of core/formulas/pointwise.h,
// printed in docs/ops.md.
//
// Integers (docs/numerics.md, "Integers and masks"):
// - An operation of a floating and an integer tensor converts the integers to the floating dtype; with i64 and u8 it
//   converts u8 to i64.
// - neg, abs, sign, floor, ceil, round, square, relu, clamp, pow by a whole number from 0 on, add, sub, mul, minimum,
//   maximum and remainder of integers are integers; all other functions, and a clamp to fractions, compute in f32.
// - u8 alone gives u8, modulo 256. But neg, add and sub, and add, sub and mul by a number, give i64.
// - Results beyond 2^63 are not defined. A number given to add, sub, mul, minimum, maximum or remainder of integers
//   must be whole, else they throw. Numbers (core/dtype.h) keep their value: x == id compares i64 exactly.
#pragma once

#include "core/tensor.h"

namespace isonorm {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);    // derivative 0 at 0
Tensor sign(const Tensor& x);   // derivative 0
Tensor floor(const Tensor& x);  // derivative 0, like ceil and round
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // halves to the even neighbour
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  // derivative 0 at 0
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor gelu(const Tensor& x);       // exact, with erf (Hendrycks & Gimpel, 1606.08415)
Tensor gelu_tanh(const Tensor& x);  // tanh approximation, same source
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);  // -softplus(-x)
Tensor erf(const Tensor& x);
Tensor clamp(const Tensor& x, Scalar lo, Scalar hi);  // throws if lo > hi
Tensor clamp_min(const Tensor& x, Scalar lo);         // clamp(x, lo, infinity)
Tensor clamp_max(const Tensor& x, Scalar hi);         // clamp(x, -infinity, hi)
Tensor pow(const Tensor& x, double p);
Tensor to(const Tensor& x, DType dtype);  // any pair of dtypes; differentiable if both are floating

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);  // the gradient is shared equally at a tie
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
// a - b floor(a/b), with b's sign, like Python's %; b = 0 gives NaN, or 0 for integers. Its derivative by b is
// -floor(a/b).
Tensor remainder(const Tensor& a, const Tensor& b);

Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, Scalar b);
Tensor sub(Scalar a, const Tensor& b);
Tensor mul(const Tensor& a, Scalar b);
Tensor div(const Tensor& a, Scalar b);
Tensor div(Scalar a, const Tensor& b);
Tensor minimum(const Tensor& a, Scalar b);  // at a tie the tensor gets half of the gradient, as if b were a tensor
Tensor minimum(Scalar a, const Tensor& b);
Tensor maximum(const Tensor& a, Scalar b);
Tensor maximum(Scalar a, const Tensor& b);
Tensor pow(double a, const Tensor& b);
Tensor remainder(const Tensor& a, Scalar b);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator-(Scalar a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator/(Scalar a, const Tensor& b) { return div(a, b); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator%(const Tensor& a, Scalar b) { return remainder(a, b); }

// x = x + y and so on. If the operation would be recorded, the handle becomes the result. Otherwise x is written in
// place: every handle and view of the storage sees the change, and a backward that needs the old values refuses to run.
// Throws if x is a leaf that requires a gradient, or a view of one, unless NoGrad lives. In place also throws if the
// result's shape or dtype differs from x's.
Tensor& operator+=(Tensor& x, const Tensor& y);
Tensor& operator-=(Tensor& x, const Tensor& y);
Tensor& operator*=(Tensor& x, const Tensor& y);
Tensor& operator/=(Tensor& x, const Tensor& y);
Tensor& operator+=(Tensor& x, Scalar y);
Tensor& operator-=(Tensor& x, Scalar y);
Tensor& operator*=(Tensor& x, Scalar y);
Tensor& operator/=(Tensor& x, Scalar y);

// Comparisons: u8 tensors, 1 where true; not differentiable.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
// With a number, rounded to a's dtype if that is floating. Integers are compared exactly.
Tensor eq(const Tensor& a, Scalar b);
Tensor ne(const Tensor& a, Scalar b);
Tensor lt(const Tensor& a, Scalar b);
Tensor le(const Tensor& a, Scalar b);
Tensor gt(const Tensor& a, Scalar b);
Tensor ge(const Tensor& a, Scalar b);
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }
inline Tensor operator==(Scalar a, const Tensor& b) { return eq(b, a); }
inline Tensor operator!=(Scalar a, const Tensor& b) { return ne(b, a); }
inline Tensor operator<(Scalar a, const Tensor& b) { return gt(b, a); }
inline Tensor operator<=(Scalar a, const Tensor& b) { return ge(b, a); }
inline Tensor operator>(Scalar a, const Tensor& b) { return lt(b, a); }
inline Tensor operator>=(Scalar a, const Tensor& b) { return le(b, a); }

// 1 (u8) where both, or one, is not 0. & and | evaluate both sides.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);  // 1 where x is 0
inline Tensor operator&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }

// 1 (u8) where x is finite, infinite, or NaN. Not differentiable.
Tensor isfinite(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isnan(const Tensor& x);
// 1 (u8) if a = b or |a - b| <= atol + rtol |b|, computed in f64; two NaN are close with equal_nan only (PyTorch's
// rule). Throws if dtypes differ.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

// a where condition (u8) is not 0, b elsewhere; the three broadcast. A number takes the tensor's dtype, or f32 if that
// is an integer dtype that cannot hold it.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);

}  // namespace isonorm
