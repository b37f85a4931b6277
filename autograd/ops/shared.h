// Internal: functions that several ops share.
#pragma once

#include <optional>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace isonorm::detail {

// True if parameters of a dtype can be used with rows of another dtype: equal dtypes, or f32 parameters with bf16 rows.
// The latter are rounded to bf16 when a product reads them; their gradient is summed and given in f32.
constexpr bool fits_rows(DType parameters, DType rows) {
  return parameters == rows || (parameters == DType::f32 && rows == DType::bf16);
}

// map(x), recorded as `name`. Its gradient is adjoint(cotangent), recorded in the same way, so gradients of every order
// exist. map and adjoint must not record anything themselves.
template <class Map, class Adjoint>
Tensor linear_map(const char* name, const Tensor& x, const Map& map, const Adjoint& adjoint) {
  Tensor y = map(x);
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([=](Flow& g) { g.give(0, linear_map(name, g.out(), adjoint, map)); });
  return y;
}

// The positions, contiguous, after a check that each is in [0, bound) or equal to `allowed`. Throws "op: id 7 at
// element 2 of shape [3] is outside of what of size 5", and if ids are not i64. If ids are on a device, the next one to
// wait for the device throws the first error (core/kernels/checks.h). op and what are literals.
Tensor checked_ids(const Tensor& ids, int64_t bound, const char* op, const char* what,
                   std::optional<int64_t> allowed = {});

// embedding() without the check, for contiguous i64 ids that are valid by construction, such as arange().
Tensor rows_of(const Tensor& weight, const Tensor& ids);

// With y = x W^T + b, x [..., in] and the gradient dy [..., out] of y, gives the gradients of W and b, inputs
// `weight` and `weight + 1` of the node, if they are wanted, in one pass over dy. If x and dy are bf16 and W is f32,
// W's gradient is not rounded on its way.
void give_weight_gradient(Flow& g, int weight, const Tensor& x, const Tensor& dy);

// y is a bf16 result of ops that replace `op` if the CPU has no bf16 products. These ops may have second derivatives
// although `op` has none; the result refuses them like `op`, so that a program behaves alike on every CPU.
inline Tensor refuse_second_gradient(const char* op, const Tensor& y) {
  const Tensor same = detach(y);
  if (auto* n = track(op, {&same}, {&y}))
    n->backward = differentiable([](Flow& g) {
      g.needs_composition();  // throws if gradients are to have a graph
      g.give(0, g.take());
    });
  return same;
}

}  // namespace isonorm::detail
