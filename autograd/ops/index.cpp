#include "autograd/ops/index.h"

#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/shared.h"
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

Tensor summed(const char* name, const Tensor& dy, kernels::IndexShape s, const Tensor& ids, const Dims& shape);

// Rows `ids` of x, which is seen as [outer, length, inner], as a tensor of `shape`.
Tensor take(const char* name, const Tensor& x, kernels::IndexShape s, const Tensor& ids, const Dims& shape) {
  Tensor y = empty(shape, x.options());
  kernels::take_rows.on(x.device(), s, y, detached::contiguous(x), ids);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable(
        [=, ids = save(ids), shape = x.shape()](Flow& g) { g.give(0, summed(name, g.out(), s, ids, shape)); });
  return y;
}
// The gradient of take(), in the accumulation dtype: adds each row of dy to the row that it was taken from.
Tensor summed(const char* name, const Tensor& dy, kernels::IndexShape s, const Tensor& ids, const Dims& shape) {
  Tensor dx = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
  kernels::add_rows.on(dx.device(), s, dx, detached::contiguous(dy), ids);
  if (auto* n = track(name, {&dx}, {&dy}))
    n->backward = differentiable(
        [=, ids = save(ids), shape = dy.shape()](Flow& g) { g.give(0, take(name, g.out(), s, ids, shape)); });
  return dx;
}

// The part of x that an index of `shape` along d can reach.
Tensor reached(const Tensor& x, int d, const Dims& shape) {
  Tensor part = x;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d && shape[i] < x.shape()[i]) part = narrow(part, i, 0, shape[i]);
  return part;
}

// `index`, contiguous, after a check that its positions lie in x along `dim`.
Tensor checked_index(const Tensor& x, int dim, const Tensor& index, const char* op) {
  const int d = normalize_dim(dim, x.rank(), op);
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == d || index.shape()[i] <= x.shape()[i];
  check(fits, op, ": index ", index.shape(), " does not fit into ", x.shape(), " outside of dimension ", dim);
  return detail::checked_ids(index, x.shape()[d], op, "a dimension");
}

Tensor spread(const Tensor& dy, int d, const Tensor& id, const Dims& shape);

// gather() without the check of positions.
Tensor gathered(const Tensor& x, int d, const Tensor& id) {
  const Tensor from = reached(x, d, id.shape());
  const kernels::IndexShape s = around(from.shape(), d, "gather");
  Tensor y = empty(id.shape(), x.options());
  kernels::gather.on(x.device(), s, y, detached::contiguous(from), id);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("gather", {&y}, {&from}))
    n->backward =
        differentiable([d, id = save(id), shape = from.shape()](Flow& g) { g.give(0, spread(g.out(), d, id, shape)); });
  return y;
}
// The gradient of gathered(), in the accumulation dtype: adds each entry of dy to the entry that it was taken from.
Tensor spread(const Tensor& dy, int d, const Tensor& id, const Dims& shape) {
  Tensor dx = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
  kernels::gather_backward.on(dx.device(), around(shape, d, "gather"), dx, detached::contiguous(dy), id);
  if (auto* n = track("gather", {&dx}, {&dy}))
    n->backward = differentiable([d, id = save(id)](Flow& g) { g.give(0, gathered(g.out(), d, id)); });
  return dx;
}

// scatter() without the check of positions, without graph.
Tensor scattered(const Tensor& x, int d, const Tensor& id, const Tensor& src) {
  const Tensor y = detached::clone(x), part = reached(y, d, id.shape()), to = detached::contiguous(part);
  kernels::scatter.on(x.device(), around(to.shape(), d, "scatter"), to, detached::contiguous(src), id);
  if (to.impl().storage != y.impl().storage) copy_into(part, to);
  return y;
}

// A copy of x with `sums` (accumulation dtype) added to its leading part of the same shape, without graph.
Tensor plus(const Tensor& x, int d, const Tensor& sums) {
  const Tensor y = detached::clone(x), part = reached(y, d, sums.shape());
  copy_into(part, add(to(part, sums.dtype()), sums));
  return y;
}

void check_source(const Tensor& x, const Tensor& src, const Dims& shape, const char* op) {
  check(src.dtype() == x.dtype(), op, ": dtypes ", x.dtype(), " and ", src.dtype(), " differ");
  check(src.shape() == shape, op, ": the source has shape ", src.shape(), ", expected ", shape);
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
  check(ids.rank() < kMaxRank, "embedding: ids have shape ", ids.shape(),
        ", and one more dimension exceeds the largest rank, ", kMaxRank);
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
  const Tensor id = checked_index(x, dim, index, "gather");
  return gathered(x, normalize_dim(dim, x.rank(), "gather"), id);
}

Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  check_same_device("scatter", x, index, src);
  const Tensor id = checked_index(x, dim, index, "scatter");
  check_source(x, src, index.shape(), "scatter");
  const int d = normalize_dim(dim, x.rank(), "scatter");
  Tensor y = scattered(x, d, id, src);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("scatter", {&y}, {&x, &src}))
    n->backward = differentiable([d, id = save(id), shape = x.shape()](Flow& g) {
      const Tensor dy = g.out(), index = id, zero = zeros({}, dy.options());
      if (g.wants(0)) g.give(0, scatter(dy, d, index, expand(zero, index.shape())));
      if (!g.wants(1)) return;
      // If several entries went to one element, only the last is there.
      Dims column = index.shape();
      for (int i = 0; i < column.rank; ++i) column[i] = i == d ? column[i] : 1;
      const Tensor number = expand(reshape(arange(index.size(d), {DType::i64, dy.device()}), column), index.shape());
      const Tensor last = scattered(empty(shape, number.options()), d, index, number);
      g.give(1, where(eq(gathered(last, d, index), number), gathered(dy, d, index), zero));
    });
  return y;
}

Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  check_same_device("scatter_add", x, index, src);
  check(x.dtype() != DType::u8, "scatter_add: dtype is u8, expected i64, f32, f64 or bf16");
  const Tensor id = checked_index(x, dim, index, "scatter_add");
  check_source(x, src, index.shape(), "scatter_add");
  const int d = normalize_dim(dim, x.rank(), "scatter_add");
  Dims shape = index.shape();
  shape[d] = x.shape()[d];
  const Tensor sums = empty(shape, {acc_dtype(x.dtype()), x.device()});
  kernels::gather_backward.on(x.device(), around(shape, d, "scatter_add"), sums, detached::contiguous(src), id);
  Tensor y = plus(x, d, sums);
  if (auto* n = track("scatter_add", {&y}, {&x, &src}))
    n->backward = differentiable([d, id = save(id)](Flow& g) {
      if (g.wants(1)) g.give(1, gathered(g.out(), d, id));
      g.give(0, g.take());
    });
  return y;
}

Tensor index_add(const Tensor& x, int dim, const Tensor& ids, const Tensor& src) {
  check_same_device("index_add", x, ids, src);
  check(x.dtype() != DType::u8, "index_add: dtype is u8, expected i64, f32, f64 or bf16");
  const int d = normalize_dim(dim, x.rank(), "index_add");
  check(ids.rank() == 1, "index_add: ids have shape ", ids.shape(), ", expected rank 1");
  const Tensor id = detail::checked_ids(ids, x.shape()[d], "index_add", "a dimension");
  Dims shape = x.shape();
  shape[d] = ids.numel();
  check_source(x, src, shape, "index_add");
  const kernels::IndexShape s = around(x.shape(), d, "index_add");
  const Tensor sums = empty(x.shape(), {acc_dtype(x.dtype()), x.device()});
  kernels::add_rows.on(x.device(), s, sums, detached::contiguous(src), id);
  Tensor y = plus(x, d, sums);
  if (auto* n = track("index_add", {&y}, {&x, &src}))
    n->backward = differentiable([s, shape, id = save(id)](Flow& g) {
      if (g.wants(1)) g.give(1, take("index_select", g.out(), s, id, shape));
      g.give(0, g.take());
    });
  return y;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_same_device("masked_select", x, mask);
  check(mask.dtype() == DType::u8, "masked_select: the mask is ", mask.dtype(), ", expected u8");
  check(broadcast_shapes(mask.shape(), x.shape(), "masked_select") == x.shape(), "masked_select: mask ", mask.shape(),
        " does not stretch to ", x.shape());
  const std::vector<uint8_t> set = detached::expand(mask, x.shape()).to_vector<uint8_t>();
  std::vector<int64_t> places;
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i]) places.push_back(static_cast<int64_t>(i));
  const Dims shape = {static_cast<int64_t>(places.size())};
  return take("masked_select", x, {1, x.numel(), 1}, to(from_vector(places, shape), x.device()), shape);
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  check(classes > 0, "one_hot: ", classes, " classes asked for, expected at least 1");
  check(ids.rank() < kMaxRank, "one_hot: ids have shape ", ids.shape(), ", which already have the maximum rank of ",
        kMaxRank);
  const Tensor id = detail::checked_ids(ids, classes, "one_hot", "the classes");
  return to(eq(unsqueeze(id, -1), arange(classes, {DType::i64, ids.device()})), dtype);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  check_same_device("masked_fill", x, mask);
  check(mask.dtype() == DType::u8, "masked_fill: the mask is ", mask.dtype(), ", expected u8");
  check(broadcast_shapes(mask.shape(), x.shape(), "masked_fill") == x.shape(), "masked_fill: mask ", mask.shape(),
        " does not stretch to ", x.shape());
  check_fits(value, x.dtype(), "masked_fill");
  return where(mask, full({}, value, x.options()), x);
}

namespace {
// Positions of the k largest elements along d, largest first.
Tensor largest(const Tensor& x, int64_t k, int d) {
  const Tensor rows = detached::contiguous(detached::transpose(x, d, -1));
  Dims shape = rows.shape();
  shape[shape.rank - 1] = k;
  const Tensor best = empty(shape, {DType::i64, x.device()});
  kernels::topk.on(x.device(), best, rows);
  return detached::contiguous(detached::transpose(best, d, -1));
}

// Ascending order is the reversed descending order of reversed x, so that equal elements stay in order and NaN is last.
Tensor order(const char* op, const Tensor& x, int dim, bool descending) {
  const int d = normalize_dim(dim, x.rank(), op);
  const int64_t n = x.shape()[d];
  if (descending) return largest(x, n, d);
  const Tensor from_end = flip(largest(flip(detach(x), {d}), n, d), {d});
  const Tensor numbers = arange(n, {DType::i64, x.device()});
  return take("order", flip(numbers, {0}), {1, n, 1}, from_end, from_end.shape());
}
}  // namespace

TopK topk(const Tensor& x, int64_t k, int dim) {
  const int d = normalize_dim(dim, x.rank(), "topk");
  check(k >= 0 && k <= x.shape()[d], "topk: k = ", k, " is outside of [0, ", x.shape()[d], "], the size of dimension ",
        dim, " of ", x.shape());
  const Tensor indices = largest(x, k, d);
  return {gathered(x, d, indices), indices};
}

TopK sort(const Tensor& x, int dim, bool descending) {
  const Tensor indices = order("sort", x, dim, descending);
  return {gathered(x, normalize_dim(dim, x.rank(), "sort"), indices), indices};
}

Tensor argsort(const Tensor& x, int dim, bool descending) { return order("argsort", x, dim, descending); }

}  // namespace isonorm
