// Internal: fused ops that some CPUs replace by other ops.
#pragma once

#include "autograd/engine.h"
#include "autograd/node.h"

namespace isonorm::detail {

// For y, a bf16 result of ops that replace `op` if the CPU has no bf16 products. These ops may have second derivatives
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
