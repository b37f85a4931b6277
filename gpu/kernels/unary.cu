// unary: out = f(x). unary_backward: dx = g df(saved); dx may be g. The functions are in
// core/formulas/pointwise.h, computed in the accumulation type.
//
// All use map_kernel (gpu/elementwise.cuh), in blocks of 256 threads with 16 bytes each: all but the most expensive of
// these functions are bound by memory. Reads every operand and writes the result once; a derivative that does not need
// `saved` does not load it.
#include "core/kernels/pointwise.h"
#include "gpu/elementwise.cuh"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

template <class Op, class T> struct Unary {
  using A = acc_t<T>;
  A p[2];
  explicit Unary(kernels::Numbers n) : p{static_cast<A>(n.p[0]), static_cast<A>(n.p[1])} {}
  __device__ __forceinline__ T operator()(T x) const { return static_cast<T>(ops::value<Op>(static_cast<A>(x), p)); }
};

template <class Op, class T> struct UnaryBackward {
  using A = acc_t<T>;
  A p[2];
  explicit UnaryBackward(kernels::Numbers n) : p{static_cast<A>(n.p[0]), static_cast<A>(n.p[1])} {}
  __device__ __forceinline__ T operator()(T g, T saved) const {
    return static_cast<T>(ops::gradient<Op>(static_cast<A>(g), static_cast<A>(saved), p));
  }
};

}  // namespace

void unary(int op, const Tensor& out, const Tensor& x, kernels::Numbers numbers) {
  visit_floating(out.dtype(), "unary", [&]<class T>() {
    visit_op(op, ops::Unary{},
             [&]<class Op>() { map("unary", Unary<Op, T>(numbers), out, write<T>(out), Operand<T>(x)); });
  });
}

void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, kernels::Numbers numbers) {
  visit_floating(dx.dtype(), "unary_backward", [&]<class T>() {
    visit_op(op, ops::Unary{}, [&]<class Op>() {
      map("unary_backward", UnaryBackward<Op, T>(numbers), dx, write<T>(dx), Operand<T>(g), Operand<T>(saved));
    });
  });
}

}  // namespace isonorm::gpu
