#include "autograd/ops/create.h"

#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "core/kernels/copy.h"
#include "core/kernels/create.h"
#include "core/system/float_environment.h"
#include "core/view.h"

namespace isonorm {

namespace {
Tensor filled(const char* op, const Dims& shape, Scalar value, TensorOptions options) {
  check_fits(value, options.dtype, op);
  Tensor out = empty(shape, options, op);
  fill(out, value);
  return out;
}
}  // namespace

Tensor full(const Dims& shape, Scalar value, TensorOptions options) { return filled("full", shape, value, options); }
Tensor zeros(const Dims& shape, TensorOptions options) { return filled("zeros", shape, 0, options); }
Tensor ones(const Dims& shape, TensorOptions options) { return filled("ones", shape, 1, options); }

Tensor full_like(const Tensor& like, Scalar value) { return filled("full_like", like.shape(), value, like.options()); }
Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

Tensor arange(double begin, double end, double step, TensorOptions options) {
  const DefaultFloatEnvironment environment;
  const double count = std::ceil((end - begin) / step);
  check(std::isfinite(count), "arange: from ", begin, " to ", end, " in steps of ", step,
        " is not a finite number of elements");
  check(step > 0 ? begin <= end : begin >= end, "arange: a step of ", step, " does not lead from ", begin, " to ", end);
  check(count < 0x1p53, "arange: from ", begin, " to ", end, " in steps of ", step, " are too many elements");
  if (count > 0)
    for (double outermost : {begin, begin + (count - 1) * step}) {
      check_fits(outermost, options.dtype, "arange");
      check(is_floating(options.dtype) || std::abs(outermost) < 0x1p53, "arange: ", outermost,
            " is not below 2^53, beyond which f64 does not hold every integer; write begin + arange(n)");
    }
  Tensor out = empty({static_cast<int64_t>(count)}, options);
  kernels::ramp.on(out.device(), out, begin, step);
  return out;
}

Tensor arange(int64_t n, TensorOptions options) {
  check(n >= 0, "arange: ", n, " elements asked for");
  return arange(0.0, static_cast<double>(n), 1.0, options);
}

Tensor linspace(double begin, double end, int64_t count, TensorOptions options) {
  const DefaultFloatEnvironment environment;
  check(is_floating(options.dtype), "linspace: dtype is ", options.dtype, ", expected f32, f64 or bf16");
  check(count >= 0, "linspace: ", count, " elements asked for");
  check(std::isfinite(begin) && std::isfinite(end), "linspace: from ", begin, " to ", end, " is not finite");
  Tensor out = empty({count}, options);
  if (count == 0) return out;
  const double step = count == 1 ? 0 : end / static_cast<double>(count - 1) - begin / static_cast<double>(count - 1);
  const int64_t head = (count + 1) / 2, tail = count - head;
  kernels::ramp.on(out.device(), as_strided(out, {head}, {1}, 0), begin, step);
  // The second half is written from its end backwards.
  if (tail > 0) kernels::ramp.on(out.device(), as_strided(out, {tail}, {-1}, count - 1), end, -step);
  return out;
}

Tensor eye(int64_t rows, int64_t columns, TensorOptions options) {
  if (columns == -1) columns = rows;
  Tensor out = filled("eye", {rows, columns}, 0, options);
  const int64_t length = std::min(rows, columns);
  if (length > 0) kernels::fill(as_strided(out, {length}, {columns + 1}, 0), 1);
  return out;
}

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
