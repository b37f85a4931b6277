#include "autograd/ops/softmax.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/softmax.h"
#include "core/view.h"

namespace isonorm {
namespace {

Tensor along_last(const char* name, const Tensor& x, bool log) {
  const Tensor input = detached::contiguous(x);
  Tensor y = empty_like(input);
  kernels::softmax.on(x.device(), y, input, log);
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([y = save_activation(y), log](Flow& g) {
      if (grad_enabled()) {
        const Tensor& dy = g.out();
        const Tensor z = y;
        return g.give(0, log ? dy - exp(z) * sum(dy, {-1}, true) : z * (dy - sum(dy * z, {-1}, true)));
      }
      const Tensor dy = detached::contiguous(g.out());
      Tensor dx = empty_like(dy);
      kernels::softmax_backward.on(dy.device(), dx, dy, y, log);
      g.give(0, dx);
    });
  return y;
}

Tensor along(const char* name, const Tensor& x, int dim, bool log) {
  check(is_floating(x.dtype()), name, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(x.rank() >= 1, name, ": the input has rank 0");
  const int d = normalize_dim(dim, x.rank(), name);
  if (d == x.rank() - 1) return along_last(name, x, log);
  return contiguous(transpose(along_last(name, transpose(x, d, -1), log), d, -1));
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) { return along("softmax", x, dim, false); }
Tensor log_softmax(const Tensor& x, int dim) { return along("log_softmax", x, dim, true); }

}  // namespace isonorm
