// Kernel slots (kernel.h) of the matrix product, and of the weight gradient of a linear map.
#pragma once

#include "core/kernels/kernel.h"
#include "core/tensor.h"

namespace isonorm::kernels {

// Returns true if ISONORM_GEMM is "openblas": OpenBLAS then computes the products, for comparison. False if it is unset
// or "own". Throws if it is another word.
bool openblas_asked();

// Returns true if OpenBLAS computes the CPU's products of f32 and f64. Their speed and their bits then depend on
// OpenBLAS's core; otherwise they depend only on isa().
inline bool openblas_multiplies() { return isa() == Isa::base || openblas_asked(); }

// Returns true if all products on this device take bf16 and sum in f32. If not, callers compute in f32.
inline bool bf16_products(Device d) { return native_bf16(d) || isa() >= Isa::avx512_bf16; }

// Returns true if the most frequent products take bf16: a contiguous `a` times one matrix for all its rows, gradients
// of weights, and mlp. The CPU then widens bf16 as it reads it.
inline bool reads_bf16(Device d) { return native_bf16(d) || isa() != Isa::base; }

// Returns true if the CPU, without bf16_products(), reads a bf16 weight once, in place. b [k, n] is the transpose of
// this weight. a is contiguous, has few rows, and is deep enough for this to pay.
inline bool reads_once(const Tensor& a, const Tensor& b) {
  const int64_t k = b.size(-2);
  return a.dtype() == DType::bf16 && !bf16_products(a.device()) && a.device().kind == DeviceKind::cpu &&
         b.rank() == 2 && a.is_contiguous() && b.strides().v[0] == 1 && b.strides().v[1] >= k && k >= 64 &&
         a.numel() < 16 * k;
}

namespace cpu {
template <Isa I> void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from);
template <Isa I> void weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add);
template <Isa I> void keep_packed(const Tensor& w);
}  // namespace cpu

// out = from + a b, with a [..., m, k], b [..., k, n] and out [..., m, n].
//
// All have one dtype: f32, f64 or bf16. bf16 needs bf16_products(), or reads_once(), or reads_bf16() with rank 2 and a
// contiguous a. The leading dimensions are equal; an operand that broadcasts has stride 0 there. In the last two
// dimensions of a and b one stride is 1 (a transposed view is fine), and the other is at least the size of the
// contiguous dimension. out is contiguous. `from` is undefined (0), a contiguous [n] that is added to every row, or
// `out` itself.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&)> matmul{
    "matmul", []<Isa I>() { return &cpu::matmul<I>; },
    [](const Tensor& out, const Tensor& a, const Tensor&, const Tensor&) { return 2 * out.numel() * a.size(-1); }};

// dw [m, n] = dy^T x and db [m] = the column sums of dy. Each is computed if it is defined, and added to its contents
// if `add`. dy [rows, m], x [rows, n]. All are contiguous, of the same dtype f32 or f64. If reads_bf16(), dy and x may
// be bf16; dw and db are then f32 or, if bf16_products(), bf16.
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)> weight_gradient{
    "weight_gradient", []<Isa I>() { return &cpu::weight_gradient<I>; },
    [](const Tensor& dw, const Tensor&, const Tensor&, const Tensor& x, bool) {
      return dw.defined() ? 2 * dw.size(0) * x.numel() : 0;
    },
    [](const Tensor& dw, const Tensor& db, const Tensor&, const Tensor&, bool add) {
      return add ? bytes_of_all(dw, db) : 0;
    }};

// Packs w^T in the form that this device's products read, and keeps it with the storage of w. w [out, in] is
// contiguous, fills its storage, and is f32, f64 or bf16. Products and mlp read the packed form until w is written to.
// Does nothing if the device has no such form.
inline constinit Kernel<void(const Tensor&)> keep_packed{"keep_packed", []<Isa I>() { return &cpu::keep_packed<I>; }};

}  // namespace isonorm::kernels
