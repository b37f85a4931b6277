// binary: out = f(a, b). compare: out (u8) = 1 if a < b, and so on. where: out = a or b, by a condition. The functions
// are in core/formulas/pointwise.h, computed in the accumulation type.
//
// All use map_kernel (gpu/elementwise.cuh), in blocks of 256 threads with 16 bytes of the widest operand each: these
// ops are bound by memory, and broadcast operands come from the caches. Reads every operand and writes out once.
#include "core/kernels/pointwise.h"
#include "gpu/elementwise.cuh"
#include "gpu/slots.h"

namespace isonorm::gpu {
namespace {

template <class Op, class R, class T> struct Binary {
  __device__ __forceinline__ R operator()(T a, T b) const {
    return static_cast<R>(Op::f(static_cast<acc_t<T>>(a), static_cast<acc_t<T>>(b)));
  }
};

template <class T> struct Where {
  __device__ __forceinline__ T operator()(uint8_t condition, T a, T b) const { return condition ? a : b; }
};

}  // namespace

void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b) {
  visit_numbers(out.dtype(), "binary", [&]<class T>() {
    visit_op(op, ops::Binary{},
             [&]<class Op>() { map("binary", Binary<Op, T, T>{}, out, write<T>(out), Operand<T>(a), Operand<T>(b)); });
  });
}

void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b) {
  visit_all(a.dtype(), [&]<class T>() {
    visit_op(op, ops::Comparison{}, [&]<class Op>() {
      map("compare", Binary<Op, uint8_t, T>{}, out, write<uint8_t>(out), Operand<T>(a), Operand<T>(b));
    });
  });
}

void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  visit_all(out.dtype(), [&]<class T>() {
    map("where", Where<T>{}, out, write<T>(out), Operand<uint8_t>(condition), Operand<T>(a), Operand<T>(b));
  });
}

}  // namespace isonorm::gpu
