// Internal: fused ops that some CPUs compute by other ops.
#pragma once

#include "autograd/engine.h"
#include "autograd/node.h"

namespace isonorm::detail {

// y, a result in bf16 of ops that take the place of `op` if the CPU has no products of bf16. Unlike `op`, these ops may
// have second derivatives: y refuses them as `op` does, so that a program behaves alike on every CPU.
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
