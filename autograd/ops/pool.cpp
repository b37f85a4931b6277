#include "autograd/ops/pool.h"

#include "autograd/node.h"
#include "core/kernels/pool.h"
#include "core/view.h"

namespace isonorm {
namespace {

kernels::WindowShape pool_shape(const char* op, const Tensor& x, Size2 window, const Pool2dOptions& o) {
  kernels::WindowShape s =
      detail::window_shape(op, x, window, {o.stride.value_or(window), o.padding, o.dilation, o.ceil});
  s.padding_counts = o.count_padding;
  check(2 * s.pad_h <= s.reach_h() && 2 * s.pad_w <= s.reach_w(), op, ": a padding of ", o.padding,
        " is above half a window of ", window);
  return s;
}

Tensor outputs(const char* op, const kernels::WindowShape& s, TensorOptions options) {
  return empty({s.images, s.out_h, s.out_w, s.channels}, options, op);
}
Tensor inputs(const kernels::WindowShape& s, TensorOptions options) {
  return empty({s.images, s.height, s.width, s.channels}, options);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Size2 window, Pool2dOptions o) {
  const kernels::WindowShape s = pool_shape("max_pool2d", x, window, o);
  check(s.places() <= kernels::kMostPlaces, "max_pool2d: a window of ", window, " has over ", kernels::kMostPlaces,
        " places");
  Tensor y = outputs("max_pool2d", s, x.options());
  const Tensor place = takes_gradient(x) ? outputs("max_pool2d", s, {DType::u8, x.device()}) : Tensor();
  kernels::max_pool.on(x.device(), s, y, place, detached::contiguous(x));
  if (Node* n = track("max_pool2d", {&y}, {&x}))
    n->backward = [s, place = save(place)](Flow& g) {
      const Tensor dy = detached::contiguous(g.out()), dx = inputs(s, dy.options());
      kernels::max_pool_backward.on(dy.device(), s, dx, dy, place);
      g.give(0, dx);
    };
  return y;
}

Tensor avg_pool2d(const Tensor& x, Size2 window, Pool2dOptions o) {
  const kernels::WindowShape s = pool_shape("avg_pool2d", x, window, o);
  Tensor y = outputs("avg_pool2d", s, x.options());
  kernels::avg_pool.on(x.device(), s, y, detached::contiguous(x));
  if (Node* n = track("avg_pool2d", {&y}, {&x}))
    n->backward = [s](Flow& g) {
      const Tensor dy = detached::contiguous(g.out()), dx = inputs(s, dy.options());
      kernels::avg_pool_backward.on(dy.device(), s, dx, dy);
      g.give(0, dx);
    };
  return y;
}

}  // namespace isonorm
