#include "autograd/ops/random.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/formulas/philox.h"
#include "core/kernels/checks.h"
#include "core/kernels/index.h"
#include "core/kernels/random.h"
#include "core/view.h"

namespace isonorm {
namespace {

Tensor floating(const char* op, const Dims& shape, TensorOptions options) {
  check(is_floating(options.dtype), op, ": dtype is ", options.dtype, ", expected f32, f64 or bf16");
  return empty(shape, options, op);
}

}  // namespace

Tensor uniform(const Dims& shape, double lo, double hi, TensorOptions options, Generator& generator) {
  check(std::isfinite(hi - lo) && lo < hi, "uniform: [", lo, ", ", hi, ") is not a finite interval");
  Tensor out = floating("uniform", shape, options);
  kernels::uniform.on(out.device(), out, lo, hi, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor rand(const Dims& shape, TensorOptions options, Generator& generator) {
  Tensor out = floating("rand", shape, options);
  kernels::uniform.on(out.device(), out, 0, 1, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor randn(const Dims& shape, TensorOptions options, Generator& generator) {
  Tensor out = floating("randn", shape, options);
  kernels::normal.on(out.device(), out, 0, 1, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor exponential(const Dims& shape, TensorOptions options, Generator& generator) {
  Tensor out = floating("exponential", shape, options);
  kernels::exponential.on(out.device(), out, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor truncated_normal(const Dims& shape, double mean, double deviation, double lo, double hi, TensorOptions options,
                        Generator& generator) {
  check(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0, "truncated_normal: mean ", mean,
        ", deviation ", deviation, "; expected finite ones, the deviation positive");
  const auto upper_tail = [&](double x) { return 0.5 * std::erfc((x - mean) / deviation * std::sqrt(0.5)); };
  const double mass = upper_tail(lo) - upper_tail(hi);
  check(mass >= 1e-3, "truncated_normal: [", lo, ", ", hi, "] holds ", mass, " of the distribution with mean ", mean,
        " and deviation ", deviation, ", expected at least 0.001");
  Tensor out = floating("truncated_normal", shape, options);
  kernels::truncated_normal.on(out.device(), out, mean, deviation, lo, hi,
                               generator.take(static_cast<uint64_t>(out.numel())));
  return out;
}

Tensor bernoulli(const Dims& shape, double p, TensorOptions options, Generator& generator) {
  check(p >= 0 && p <= 1, "bernoulli: probability ", p, " is outside of [0, 1]");
  Tensor out = empty(shape, options, "bernoulli");
  kernels::bernoulli.on(out.device(), out, p, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor randint(int64_t lo, int64_t hi, const Dims& shape, Device device, Generator& generator) {
  check(lo < hi, "randint: no integer in [", lo, ", ", hi, ")");
  Tensor out = empty(shape, {DType::i64, device}, "randint");
  kernels::random_integers.on(device, out, lo, hi, generator.take(philox_blocks(out.numel(), 2)));
  return out;
}

Tensor randperm(int64_t n, Device device, Generator& generator) {
  check(n >= 0, "randperm: ", n, " elements asked for");
  Tensor out = empty({n}, {DType::i64, device});
  kernels::random_permutation.on(device, out, generator.take(static_cast<uint64_t>(n)));
  return out;
}

Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check(p >= 0 && p < 1, "dropout: probability ", p, " is outside of [0, 1)");
  check(is_floating(x.dtype()), "dropout: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  if (!training || p == 0) return x;
  const Generator state = generator.take(philox_blocks(x.numel(), 4));
  Tensor y = empty_like(x);
  kernels::dropout.on(x.device(), y, detached::contiguous(x), p, state);
  if (auto* n = track("dropout", {&y}, {&x}))
    n->backward = differentiable([p, state](Flow& g) {
      // The map is linear and symmetric. With create_graph the gradient is a product with the map of ones.
      const Tensor in = grad_enabled() ? ones_like(g.out()) : detached::contiguous(g.out()), dx = empty_like(in);
      kernels::dropout.on(dx.device(), dx, in, p, state);
      g.give(0, grad_enabled() ? where(eq(dx, 0), zeros({}, dx.options()), g.out() * dx) : dx);
    });
  return y;
}

Tensor multinomial(const Tensor& weights, int64_t count, bool replacement, Generator& generator) {
  check(weights.rank() >= 1 && is_floating(weights.dtype()), "multinomial: weights are ", weights.dtype(), ' ',
        weights.shape(), ", expected floating ones, [..., n]");
  const int64_t n = weights.size(-1), needed = replacement ? 1 : count;
  check(count >= 0 && needed <= n && n > 0, "multinomial: ", count, " draws ", replacement ? "with" : "without",
        " replacement from ", n, " weights");
  const Tensor w = detached::to(detached::contiguous(weights), DType::f64);
  Dims shape = w.shape();
  shape[shape.rank - 1] = count;
  if (w.numel() == 0) return empty(shape, {DType::i64, w.device()});
  kernels::check_weights.on(w.device(), {.least = amin(w),
                                         .total = amax(sum(w, {-1})),
                                         .positive = amin(sum(to(gt(w, 0), DType::f64), {-1})),
                                         .needed = static_cast<double>(needed)});
  if (!replacement) {
    // Adding 2^-60 to e changes no draw and keeps the quotient finite.
    return topk(div(w, add(exponential(w.shape(), w.options(), generator), 0x1p-60)), count).indices;
  }
  const Tensor running = cumsum(w, -1);
  const Tensor target = mul(rand(shape, w.options(), generator), slice(running, -1, n - 1, n));
  Tensor out = empty(shape, {DType::i64, w.device()});
  kernels::search_sorted.on(out.device(), out, running, target);
  return out;
}

}  // namespace isonorm
