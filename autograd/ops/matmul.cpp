#include "autograd/ops/matmul.h"

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
#include "autograd/rounded_masters.h"
#include "core/kernels/matmul.h"
#include "core/view.h"

namespace isonorm {
namespace {

// x if the kernel can read its last two dimensions (one stride is 1, the other at least as large as that dimension),
// else a copy.
Tensor readable(const Tensor& x) {
  const int64_t rows = x.size(-2), columns = x.size(-1), sr = x.strides()[x.rank() - 2], sc = x.strides()[x.rank() - 1];
  const bool row_major = (sc == 1 || columns == 1) && (sr >= columns || rows == 1);
  const bool column_major = (sr == 1 || rows == 1) && (sc >= rows || columns == 1);
  return row_major || column_major ? x : detached::clone(x);
}

// Product of matrices (rank >= 2), no graph. `bias` [n] or undefined is added to every row.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  const bool one_matrix = b.rank() == 2 && a.is_contiguous();
  if (a.dtype() == DType::bf16 && !kernels::bf16_products(a.device()) && !kernels::reads_once(a, b) &&
      !(one_matrix && kernels::reads_bf16(a.device())))
    return detached::to(
        product(detached::to(a, DType::f32), detached::to(b, DType::f32), detached::to(bias, DType::f32)), DType::bf16);
  Dims shape = broadcast_shapes(part(a.shape(), 0, a.rank() - 2), part(b.shape(), 0, b.rank() - 2), "matmul");
  Dims full_a = shape, full_b = shape;
  for (int64_t s : {a.size(-2), a.size(-1)}) full_a.push_back(s);
  for (int64_t s : {b.size(-2), b.size(-1)}) full_b.push_back(s);
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  Tensor out = empty(shape, a.options());
  const Tensor from = detached::contiguous(bias);
  // A batch of rows times one matrix is one large product.
  if (one_matrix && a.rank() > 2) {
    const int64_t rows = a.size(-1) == 0 ? out.numel() / std::max<int64_t>(1, b.size(-1)) : a.numel() / a.size(-1);
    kernels::matmul.on(a.device(), detached::reshape(out, {rows, b.size(-1)}), detached::reshape(a, {rows, a.size(-1)}),
                       readable(b), from);
  } else {
    kernels::matmul.on(a.device(), out, detached::expand(readable(a), full_a), detached::expand(readable(b), full_b),
                       from);
  }
  return out;
}

// The gradient of a matrix [k, n] that a batch shared: for x [..., m, k] and y [..., m, n], the sum over the batch of
// x^T y, as one product.
Tensor product_over_rows(const Tensor& x, const Tensor& y) {
  const int64_t count = numel(part(x.shape(), 0, x.rank() - 1), "matmul");
  const auto rows = [count](const Tensor& t) { return reshape(t, {count, t.size(-1)}); };
  return matmul(transpose(rows(x), 0, 1), rows(y));
}

}  // namespace

void detail::give_weight_gradient(Flow& g, int weight, const Tensor& x, const Tensor& dy) {
  if (!g.wants(weight) && !g.wants(weight + 1)) return;
  int64_t rows = 1;
  for (int d = 0; d < x.rank() - 1; ++d) rows *= x.size(d);
  const auto by_rows = [&](const Tensor& t) {
    const DType dtype = kernels::reads_bf16(t.device()) ? t.dtype() : acc_dtype(t.dtype());
    return detached::to(detached::reshape(detached::contiguous(t), {rows, t.size(-1)}), dtype);
  };
  const Tensor in = by_rows(x), d = by_rows(dy);
  const auto sums = [&](int i, const Dims& shape) {
    if (!g.wants(i)) return Tensor();
    return empty(shape,
                 {kernels::bf16_products(in.device()) && in.dtype() == DType::bf16 ? g.dtype(i) : acc_dtype(in.dtype()),
                  in.device()});
  };
  const Tensor dw = sums(weight, {d.size(1), in.size(1)}), db = sums(weight + 1, {d.size(1)});
  kernels::weight_gradient.on(in.device(), dw, db, d, in, false);
  if (dw.defined()) g.give(weight, dw);
  if (db.defined()) g.give(weight + 1, db);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_same_device("matmul", a, b);
  check(a.rank() >= 1 && b.rank() >= 1, "matmul: shapes ", a.shape(), " x ", b.shape(), ": an operand has rank 0");
  check(a.dtype() == b.dtype(), "matmul: dtypes ", a.dtype(), " and ", b.dtype(), " differ");
  check(is_floating(a.dtype()), "matmul: dtype is ", a.dtype(), ", expected f32, f64 or bf16");
  check(a.size(-1) == b.size(b.rank() == 1 ? 0 : -2), "matmul: inner dimensions differ, ", a.shape(), " x ", b.shape());
  if (a.rank() == 1) return squeeze(matmul(unsqueeze(a, 0), b), b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  Tensor out = product(a, b);
  if (auto* n = track("matmul", {&out}, {&a, &b}))
    n->backward = differentiable([a = save(a), b = save(b)](Flow& g) {
      const Tensor x = a, y = b;
      if (g.wants(0)) g.give(0, matmul(g.out(), transpose(y, -1, -2)));
      if (g.wants(1)) g.give(1, y.rank() == 2 ? product_over_rows(x, g.out()) : matmul(transpose(x, -1, -2), g.out()));
    });
  return out;
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_same_device("dot", a, b);
  check(a.rank() == 1 && a.shape() == b.shape(), "dot: shapes ", a.shape(), " and ", b.shape(), ", expected [n] twice");
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), "dot: dtypes are ", a.dtype(), " and ", b.dtype(),
        ", expected one floating one");
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_same_device("outer", a, b);
  check(a.rank() == 1 && b.rank() == 1, "outer: shapes ", a.shape(), " and ", b.shape(), ", expected rank 1");
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), "outer: dtypes are ", a.dtype(), " and ", b.dtype(),
        ", expected one floating one");
  return mul(unsqueeze(a, 1), b);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same_device("linear", x, weight, bias);
  check(is_floating(x.dtype()), "linear: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(weight.rank() == 2, "linear: the weight has shape ", weight.shape(), ", expected [out, in]");
  check(x.rank() >= 1 && x.size(-1) == weight.size(1), "linear: input ", x.shape(), " does not fit weight ",
        weight.shape(), " (its last dimension must be ", weight.size(1), ")");
  check(!bias.defined() || bias.shape() == Dims{weight.size(0)}, "linear: bias ",
        bias.defined() ? bias.shape() : Dims{}, " does not fit weight ", weight.shape());
  check(detail::fits_rows(weight.dtype(), x.dtype()) && (!bias.defined() || bias.dtype() == weight.dtype()),
        "linear: dtypes differ: input ", x.dtype(), ", weight ", weight.dtype(),
        bias.defined() ? text(", bias ", bias.dtype()) : std::string());
  if (x.rank() == 1) return squeeze(linear(unsqueeze(x, 0), weight, bias), 0);
  const Tensor read = detail::as_rows(weight, x.dtype());
  Tensor out =
      product(detached::contiguous(x), detached::transpose(readable(read), 0, 1), detail::as_rows(bias, x.dtype()));
  if (auto* n = track("linear", {&out}, {&x, &weight, &bias})) {
    auto rule = [x = save_activation(x), weight = save(weight.dtype() == x.dtype() ? weight : read)](Flow& g) {
      if (grad_enabled()) {
        if (g.wants(0)) g.give(0, matmul(g.out(), weight));
        if (g.wants(1)) g.give(1, product_over_rows(g.out(), x));
        return g.give(2, g.out());
      }
      const Tensor dy = detached::contiguous(g.out());
      if (g.wants(0)) g.give(0, product(dy, weight));
      // Otherwise x is not needed and may have changed.
      if (g.wants(1) || g.wants(2)) detail::give_weight_gradient(g, 1, x, dy);
    };
    // A rounded weight has no graph.
    n->backward = differentiable(std::move(rule), weight.dtype() == x.dtype());
  }
  return out;
}

}  // namespace isonorm
