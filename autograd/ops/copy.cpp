#include "autograd/ops/copy.h"

#include "autograd/node.h"
#include "core/kernels/copy.h"
#include "core/view.h"

namespace isonorm {

Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  Tensor y = empty(x.shape(), {x.dtype(), device});
  kernels::copy_between(y, x);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("to", {&y}, {&x}))
    n->backward = differentiable([device = x.device()](Flow& g) { g.give(0, to(g.out(), device)); });
  return y;
}

Tensor clone(const Tensor& x) {
  Tensor y = detached::clone(x);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("clone", {&y}, {&x})) n->backward = differentiable([](Flow& g) { g.give(0, g.take()); });
  return y;
}

}  // namespace isonorm
