#include "autograd/ops/index.h"

#include "autograd/node.h"
#include "autograd/ops/checked_ids.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "core/kernels/checks.h"
#include "core/kernels/index.h"
#include "core/view.h"

namespace isonorm {

Tensor detail::checked_ids(const Tensor& ids, int64_t bound, const char* op, const char* what,
                           std::optional<int64_t> allowed) {
  check(ids.dtype() == DType::i64, op, ": positions are ", ids.dtype(), ", expected i64");
  const Tensor c = detached::contiguous(ids);
  kernels::check_ids.on(c.device(), c, {op, what, bound, allowed, ids.shape()});
  return c;
}

namespace {

kernels::IndexShape around(const Dims& shape, int d, const char* op) {
  return {numel(part(shape, 0, d), op), shape[d], numel(part(shape, d + 1, shape.rank), op)};
}

// x seen as [outer, length, inner], rows ids of it, as a tensor of `shape`.
Tensor take(const char* name, const Tensor& x, kernels::IndexShape s, const Tensor& ids, const Dims& shape) {
  Tensor y = empty(shape, x.options());
  kernels::take_rows.on(x.device(), s, y, detached::contiguous(x), ids);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = [s, ids = save(ids), shape = x.shape()](Flow& g) {
      const Tensor dy = detached::contiguous(g.out()), id = ids;
      const Tensor dx = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
      kernels::add_rows.on(dx.device(), s, dx, dy, id);
      g.give(0, dx);
    };
  return y;
}

// gather() of positions that are right.
Tensor gathered(const Tensor& x, int d, const Tensor& id) {
  Tensor from = x;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d && id.shape()[i] < x.shape()[i]) from = narrow(from, i, 0, id.shape()[i]);
  const kernels::IndexShape s = around(from.shape(), d, "gather");
  Tensor y = empty(id.shape(), x.options());
  kernels::gather.on(x.device(), s, y, detached::contiguous(from), id);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("gather", {&y}, {&from}))
    n->backward = [s, id = save(id), shape = from.shape()](Flow& g) {
      const Tensor dy = detached::contiguous(g.out());
      const Tensor dx = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
      kernels::gather_backward.on(dx.device(), s, dx, dy, id);
      g.give(0, dx);
    };
  return y;
}

}  // namespace

Tensor detail::rows_of(const Tensor& weight, const Tensor& ids) {
  Dims shape = ids.shape();
  shape.push_back(weight.size(1));
  return take("embedding", weight, around(weight.shape(), 0, "embedding"), ids, shape);
}

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  check_same_device("embedding", weight, ids);
  check(weight.rank() == 2 && is_floating(weight.dtype()), "embedding: the weight is ", weight.dtype(), ' ',
        weight.shape(), ", expected a floating table [rows, width]");
  check(ids.rank() < kMaxRank, "embedding: ids have shape ", ids.shape(), ", rows of them pass the largest rank, ",
        kMaxRank);
  return detail::rows_of(weight, detail::checked_ids(ids, weight.size(0), "embedding", "the table"));
}

Tensor index_select(const Tensor& x, int dim, const Tensor& ids) {
  check_same_device("index_select", x, ids);
  const int d = normalize_dim(dim, x.rank(), "index_select");
  check(ids.rank() == 1, "index_select: ids have shape ", ids.shape(), ", expected rank 1");
  const Tensor id = detail::checked_ids(ids, x.shape()[d], "index_select", "a dimension");
  Dims shape = x.shape();
  shape[d] = ids.numel();
  return take("index_select", x, around(x.shape(), d, "index_select"), id, shape);
}

Tensor gather(const Tensor& x, int dim, const Tensor& index) {
  check_same_device("gather", x, index);
  const int d = normalize_dim(dim, x.rank(), "gather");
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == d || index.shape()[i] <= x.shape()[i];
  check(fits, "gather: index ", index.shape(), " does not fit into ", x.shape(), " outside of dimension ", dim);
  return gathered(x, d, detail::checked_ids(index, x.shape()[d], "gather", "a dimension"));
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  check(classes > 0, "one_hot: ", classes, " classes asked for, expected at least 1");
  check(ids.rank() < kMaxRank, "one_hot: ids have shape ", ids.shape(), ", which has the largest rank, ", kMaxRank);
  const Tensor id = detail::checked_ids(ids, classes, "one_hot", "the classes");
  return cast(eq(unsqueeze(id, -1), arange(classes, {DType::i64, ids.device()})), dtype);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check_same_device("masked_fill", x, mask);
  check(is_floating(x.dtype()), "masked_fill: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(mask.dtype() == DType::u8, "masked_fill: the mask is ", mask.dtype(), ", expected u8");
  check(broadcast_shapes(mask.shape(), x.shape(), "masked_fill") == x.shape(), "masked_fill: mask ", mask.shape(),
        " does not stretch to ", x.shape());
  return where(mask, full({}, value, x.options()), x);
}

TopK topk(const Tensor& x, int64_t k, int dim) {
  const int d = normalize_dim(dim, x.rank(), "topk");
  check(is_floating(x.dtype()), "topk: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(k >= 0 && k <= x.shape()[d], "topk: k = ", k, " is outside of [0, ", x.shape()[d], "], the size of dimension ",
        dim, " of ", x.shape());
  const Tensor rows = detached::contiguous(detached::transpose(x, d, -1));
  Dims shape = rows.shape();
  shape[shape.rank - 1] = k;
  const Tensor best = empty(shape, {DType::i64, x.device()});
  kernels::topk.on(x.device(), best, rows);
  const Tensor indices = detached::contiguous(detached::transpose(best, d, -1));
  return {gathered(x, d, indices), indices};
}

}  // namespace isonorm
