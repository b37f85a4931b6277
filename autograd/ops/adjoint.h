// Internal: records linear ops that are kernels.
#pragma once

#include "autograd/node.h"

namespace isonorm::detail {

// map(x), recorded as `name`. Its gradient is adjoint(cotangent), recorded in the same way, so gradients of every order
// exist. map and adjoint must not record anything themselves.
template <class Map, class Adjoint>
Tensor linear_map(const char* name, const Tensor& x, const Map& map, const Adjoint& adjoint) {
  Tensor y = map(x);
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([=](Flow& g) { g.give(0, linear_map(name, g.out(), adjoint, map)); });
  return y;
}

}  // namespace isonorm::detail
