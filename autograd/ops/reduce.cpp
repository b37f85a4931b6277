#include "autograd/ops/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/kernels/reduce.h"
#include "core/view.h"

namespace isonorm {
namespace {

// The dimensions to reduce, and the result's shape with and without them.
struct Plan {
  const char* op = "";
  DimSet dims = 0;
  Dims kept, keepdim;
  int64_t count = 1;  // elements per result
};

Plan plan(const Tensor& x, const std::vector<int>& dims, const char* op) {
  Plan p;
  p.op = op;
  for (int d : dims) {
    const DimSet bit = DimSet{1} << normalize_dim(d, x.rank(), op);
    check(!(p.dims & bit), op, ": dimension ", d, " is given twice");
    p.dims |= bit;
  }
  if (dims.empty()) p.dims = (DimSet{1} << x.rank()) - 1;
  for (int d = 0; d < x.rank(); ++d) {
    const bool reduced = p.dims >> d & 1;
    p.keepdim.push_back(reduced ? 1 : x.shape()[d]);
    if (reduced)
      p.count = checked_mul(p.count, x.shape()[d], op);
    else
      p.kept.push_back(x.shape()[d]);
  }
  return p;
}

void check_floating(const Tensor& x, const char* op) {
  check(is_floating(x.dtype()), op, ": dtype is ", x.dtype(), ", expected f32, f64 or bf16");
}

// u8 is reduced in i64: kernels take i64 and floating dtypes.
Tensor widened(const Tensor& x) { return x.dtype() == DType::u8 ? detached::to(x, DType::i64) : x; }

// x as an array [outer, reduced, inner].
kernels::ReduceShape along(const Tensor& x, const Plan& p) {
  const int d = std::countr_zero(p.dims);
  return {numel(part(x.shape(), 0, d), p.op), x.shape()[d], numel(part(x.shape(), d + 1, x.rank()), p.op)};
}

Tensor reduce(const Tensor& x, const Plan& p, kernels::ReduceOp kind, bool keepdim) {
  return detached::reduce(kind, x, p.dims, keepdim ? p.keepdim : p.kept, p.op);
}

Tensor extremum(const char* name, kernels::ReduceOp kind, const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  const Plan p = plan(x, dims, name);
  check(p.count > 0 || numel(p.kept, name) == 0, name, ": shape ", x.shape(), " has no elements to choose from");
  Tensor y = detached::to(reduce(widened(x), p, kind, keepdim), x.dtype());
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([p, x = save(x), y = save(y)](Flow& g) {
      const Tensor input = x;
      const Tensor chosen = eq(input, reshape(y, p.keepdim));
      const Tensor ties = reduce(to(chosen, input.dtype()), p, kernels::ReduceOp::sum, true);
      // In a slice with NaN no entry equals the result: then all entries take NaN.
      const Tensor other = masked_fill(zeros_like(ties), eq(ties, 0), NAN);
      g.give(0, where(chosen, div(reshape(g.out(), p.keepdim), ties), other));
    });
  return y;
}

}  // namespace

Tensor sum(const Tensor& x, std::vector<int> dims, bool keepdim) {
  const Plan p = plan(x, dims, "sum");
  Tensor y = reduce(widened(x), p, kernels::ReduceOp::sum, keepdim);
  if (auto* n = track("sum", {&y}, {&x}))
    n->backward =
        differentiable([p, shape = x.shape()](Flow& g) { g.give(0, expand(reshape(g.out(), p.keepdim), shape)); });
  return y;
}

Tensor mean(const Tensor& x, std::vector<int> dims, bool keepdim) {
  check_floating(x, "mean");
  const Plan p = plan(x, dims, "mean");
  return div(sum(x, dims, keepdim), static_cast<double>(p.count));
}

namespace {
// The product as a tree of multiplications: their gradients need no division, so zeros do no harm.
Tensor product_of_pairs(const Tensor& x, const Plan& p, bool keepdim) {
  std::vector<int> order, reduced;
  for (int d = 0; d < x.rank(); ++d) (p.dims >> d & 1 ? reduced : order).push_back(d);
  order.insert(order.end(), reduced.begin(), reduced.end());
  Tensor factors = reshape(permute(x, order), {numel(p.kept, p.op), p.count});
  if (p.count == 0) factors = ones({factors.size(0), 1}, x.options());
  while (factors.size(1) > 1) {
    const int64_t n = factors.size(1), half = n / 2;
    const Tensor pairs = narrow(factors, 1, 0, half) * narrow(factors, 1, half, half);
    factors = n % 2 ? cat({pairs, narrow(factors, 1, n - 1, 1)}, 1) : pairs;
  }
  return reshape(factors, keepdim ? p.keepdim : p.kept);
}
}  // namespace

Tensor prod(const Tensor& x, std::vector<int> dims, bool keepdim) {
  const Plan p = plan(x, dims, "prod");
  Tensor y = reduce(widened(x), p, kernels::ReduceOp::product, keepdim);
  if (auto* n = track("prod", {&y}, {&x}))
    n->backward = differentiable([p, keepdim, x = save(x)](Flow& g) {
      if (g.needs_composition()) return g.follow({product_of_pairs(g.attached(0, x), p, keepdim)});
      // The product of the other entries is the product over all nonzero factors divided by the entry (if that is not
      // 0), or 0 if another entry is 0.
      const Tensor input = x, is_zero = eq(input, 0);
      const Tensor factors = where(is_zero, ones({}, input.options()), input);
      const Tensor others = div(reduce(factors, p, kernels::ReduceOp::product, true), factors);
      const Tensor zeros = reduce(to(is_zero, input.dtype()), p, kernels::ReduceOp::sum, true);
      const Tensor counts = where(is_zero, eq(zeros, 1), eq(zeros, 0));
      const Tensor dx = mul(reshape(g.out(), p.keepdim), others);
      g.give(0, masked_fill(dx, eq(counts, 0), 0));
    });
  return y;
}

Tensor amax(const Tensor& x, std::vector<int> dims, bool keepdim) {
  return extremum("amax", kernels::ReduceOp::max, x, dims, keepdim);
}
Tensor amin(const Tensor& x, std::vector<int> dims, bool keepdim) {
  return extremum("amin", kernels::ReduceOp::min, x, dims, keepdim);
}

Tensor var(const Tensor& x, std::vector<int> dims, double correction, bool keepdim) {
  check_floating(x, "var");
  const Plan p = plan(x, dims, "var");
  const double freedom = std::max(0.0, static_cast<double>(p.count) - correction);
  // The mean of a long row carries the rounding error of its sum; a second pass removes what this leaves in the
  // deviations.
  const auto deviations = [dims](const Tensor& of) {
    Tensor d = to(of, acc_dtype(of.dtype()));
    for (int pass = 0; pass < 2; ++pass) d = sub(d, mean(d, dims, true));
    return d;
  };
  const Tensor d = deviations(detach(x));
  Tensor y = to(div(sum(square(d), dims, keepdim), freedom), x.dtype());
  if (auto* n = track("var", {&y}, {&x}))
    n->backward = differentiable([p, x = save(x), deviations, freedom](Flow& g) {
      const Tensor d = deviations(x), dy = to(reshape(g.out(), p.keepdim), d.dtype());
      g.give(0, mul(d, mul(dy, 2 / freedom)));  // the deviations sum to 0, so the mean adds nothing
    });
  return y;
}

Tensor std(const Tensor& x, std::vector<int> dims, double correction, bool keepdim) {
  check_floating(x, "std");
  plan(x, dims, "std");
  // A variance of 0 does not enter the root, so that its gradient is 0 and not infinite.
  const Tensor v = var(x, std::move(dims), correction, keepdim), none = eq(v, 0);
  return where(none, 0, sqrt(where(none, 1, v)));
}

Tensor norm(const Tensor& x, std::vector<int> dims, bool keepdim) {
  check_floating(x, "norm");
  const Plan p = plan(x, dims, "norm");
  const Tensor flat = detach(x);
  Tensor y = sqrt(reduce(mul(flat, flat), p, kernels::ReduceOp::sum, keepdim));
  if (auto* n = track("norm", {&y}, {&x}))
    n->backward = differentiable([p, x = save(x), y = save(y)](Flow& g) {
      const Tensor length = reshape(y, p.keepdim);
      // If the length is 0, so is the gradient. It is divided by 1 then, so that its own derivative is 0 and not 0/0.
      const Tensor none = eq(length, sub(length, length));
      const Tensor slope = div(reshape(g.out(), p.keepdim), where(none, full({}, 1, length.options()), length));
      const Tensor scale = where(none, full({}, 0, length.options()), slope);
      g.give(0, mul(x, scale));
    });
  return y;
}

Tensor logsumexp(const Tensor& x, std::vector<int> dims, bool keepdim) {
  check_floating(x, "logsumexp");
  const Plan p = plan(x, dims, "logsumexp");
  const Tensor top = reduce(x, p, kernels::ReduceOp::max, true);
  // A row of -inf, or of nothing, has an infinite maximum; shifting it by 0 instead avoids inf - inf.
  Tensor zero = empty({}, top.options());
  fill(zero, 0);
  const Tensor shift = where(isfinite(top), top, zero);
  return add(log(sum(exp(sub(x, shift)), dims, keepdim)), keepdim ? shift : reshape(shift, p.kept));
}

Tensor cumsum(const Tensor& given, int dim) {
  const Tensor x = widened(given);
  const kernels::ReduceShape s = along(x, plan(x, {dim}, "cumsum"));
  Tensor y = empty_like(x);
  kernels::cumsum.on(x.device(), s, y, detached::contiguous(x), false);
  if (auto* n = track("cumsum", {&y}, {&x}))
    n->backward = differentiable([s, dim](Flow& g) {
      if (grad_enabled()) return g.give(0, flip(cumsum(flip(g.out(), {dim}), dim), {dim}));
      Tensor dx = empty_like(g.out());
      kernels::cumsum.on(dx.device(), s, dx, detached::contiguous(g.out()), true);
      g.give(0, dx);
    });
  return y;
}

Tensor recentre(const Tensor& x, int dim) {
  check_floating(x, "recentre");
  const kernels::ReduceShape s = along(x, plan(x, {dim}, "recentre"));
  Tensor y = empty_like(x);
  kernels::recentre.on(x.device(), s, y, detached::contiguous(x));
  if (auto* n = track("recentre", {&y}, {&x}))
    n->backward = differentiable([s, dim](Flow& g) {
      if (grad_enabled()) return g.give(0, recentre(g.out(), dim));
      const Tensor dx = g.reuse();
      kernels::recentre.on(dx.device(), s, dx, detached::contiguous(g.out()));
      g.give(0, dx);
    });
  return y;
}

namespace {
Tensor place(const char* op, const Tensor& x, int dim, bool keepdim, bool of_smallest) {
  const Plan p = plan(x, {dim}, op);
  check(p.count > 0, op, ": dimension ", dim, " of shape ", x.shape(), " is empty");
  Tensor index = empty(keepdim ? p.keepdim : p.kept, {DType::i64, x.device()});
  const Tensor from = detached::contiguous(widened(x));
  // -1 - x reverses the order of every i64; -x overflows at the smallest.
  const auto reversed = [&] { return is_floating(x.dtype()) ? neg(detach(from)) : sub(-1, from); };
  kernels::arg_max.on(x.device(), along(x, p), index, of_smallest ? reversed() : from);
  return index;
}

// The number of nonzero elements of `mask`, in f32: rounded, but 0 only if there are none.
Tensor number_set(const char* op, const Tensor& mask, const std::vector<int>& dims, bool keepdim) {
  const Tensor x = to(mask, DType::f32);
  return reduce(x, plan(x, dims, op), kernels::ReduceOp::sum, keepdim);
}
}  // namespace

Tensor argmax(const Tensor& x, int dim, bool keepdim) { return place("argmax", x, dim, keepdim, false); }
Tensor argmin(const Tensor& x, int dim, bool keepdim) { return place("argmin", x, dim, keepdim, true); }

Tensor any(const Tensor& x, std::vector<int> dims, bool keepdim) {
  return gt(number_set("any", ne(x, 0), dims, keepdim), 0);
}
Tensor all(const Tensor& x, std::vector<int> dims, bool keepdim) {
  return eq(number_set("all", eq(x, 0), dims, keepdim), 0);
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_same_device("allclose", a, b);
  check(a.dtype() == b.dtype(), "allclose: dtypes ", a.dtype(), " and ", b.dtype(), " differ");
  broadcast_shapes(a.shape(), b.shape(), "allclose");
  return all(isclose(a, b, rtol, atol, equal_nan)).item() != 0;
}

bool equal(const Tensor& a, const Tensor& b) {
  check_same_device("equal", a, b);
  return a.dtype() == b.dtype() && a.shape() == b.shape() && all(eq(a, b)).item() != 0;
}

}  // namespace isonorm
