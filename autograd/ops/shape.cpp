// Views: the forward moves no element; the backward undoes the view on the gradient.
#include "autograd/ops/shape.h"

#include <algorithm>

#include "autograd/ops/create.h"
#include "autograd/ops/shared.h"
#include "core/formulas/round_up.h"
#include "core/kernels/copy.h"
#include "core/kernels/index.h"
#include "core/view.h"

namespace isonorm {
namespace {

// Records y, all of x's elements in row-major order, as a result of x; returns x itself if the shapes are equal.
Tensor reshaped(const Tensor& x, Tensor y) {
  if (y.shape() == x.shape()) return x;
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("reshape", {&y}, {&x}))
    n->backward = differentiable([shape = x.shape()](Flow& g) { g.give(0, reshape(g.out(), shape)); });
  return y;
}

template <class Pick> Tensor placed(const char* name, const Tensor& dy, const Dims& shape, Pick pick);

// A view that shows some elements of x, each once. `pick` makes the same view of another tensor.
template <class Pick> Tensor partial_view(const char* name, const Tensor& x, Pick pick) {
  Tensor y = pick(x);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track(name, {&y}, {&x}))
    n->backward = differentiable([=, shape = x.shape()](Flow& g) { g.give(0, placed(name, g.out(), shape, pick)); });
  return y;
}
// The gradient of partial_view(): a tensor of `shape` with dy at the elements that the view shows, 0 elsewhere.
template <class Pick> Tensor placed(const char* name, const Tensor& dy, const Dims& shape, Pick pick) {
  Tensor dx = empty(shape, dy.options());
  kernels::fill(dx, 0);
  copy_into(pick(dx), detach(dy));
  if (auto* n = track(name, {&dx}, {&dy}))
    n->backward = differentiable([=](Flow& g) { g.give(0, partial_view(name, g.out(), pick)); });
  return dx;
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = detached::contiguous(x);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("contiguous", {&y}, {&x})) n->backward = differentiable([](Flow& g) { g.give(0, g.take()); });
  return y;
}

Tensor reshape(const Tensor& x, const Dims& shape) { return reshaped(x, detached::reshape(x, shape)); }
Tensor view(const Tensor& x, const Dims& shape) { return reshaped(x, detached::view(x, shape)); }

Tensor flatten(const Tensor& x, int first, int last) {
  if (x.rank() == 0) return reshape(x, {1});
  first = normalize_dim(first, x.rank(), "flatten");
  last = normalize_dim(last, x.rank(), "flatten");
  check(first <= last, "flatten: first dimension ", first, " is after the last, ", last);
  Dims shape;
  int64_t merged = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (d < first || d > last) {
      shape.push_back(x.shape()[d]);
      continue;
    }
    merged = checked_mul(merged, x.shape()[d], "flatten");
    if (d == last) shape.push_back(merged);
  }
  return reshape(x, shape);
}

Tensor permute(const Tensor& x, const std::vector<int>& order) {
  Tensor y = detached::permute(x, order);
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("permute", {&y}, {&x})) {
    std::vector<int> back(order.size());
    for (int i = 0; i < x.rank(); ++i) back[normalize_dim(order[i], x.rank(), "permute")] = i;
    n->backward = differentiable([back = std::move(back)](Flow& g) { g.give(0, permute(g.out(), back)); });
  }
  return y;
}

Tensor transpose(const Tensor& x, int a, int b) {
  std::vector<int> order(x.rank());
  for (int i = 0; i < x.rank(); ++i) order[i] = i;
  std::swap(order[normalize_dim(a, x.rank(), "transpose")], order[normalize_dim(b, x.rank(), "transpose")]);
  return permute(x, order);
}

Tensor squeeze(const Tensor& x, int dim) {
  const int d = normalize_dim(dim, x.rank(), "squeeze");
  check(x.shape()[d] == 1, "squeeze: dimension ", dim, " of shape ", x.shape(), " has size ", x.shape()[d], ", not 1");
  Dims shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != d) shape.push_back(x.shape()[i]);
  return reshape(x, shape);
}

Tensor unsqueeze(const Tensor& x, int dim) {
  check(x.rank() < kMaxRank, "unsqueeze: shape ", x.shape(), " already has the maximum rank of ", kMaxRank);
  const int d = normalize_dim(dim, x.rank() + 1, "unsqueeze");
  Dims shape;
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == d) shape.push_back(1);
    if (i < x.rank()) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}

Tensor expand(const Tensor& x, const Dims& shape) {
  Tensor y = detached::expand(x, shape);
  if (y.shape() == x.shape()) return x;
  if (!is_floating(x.dtype())) return y;
  if (auto* n = track("expand", {&y}, {&x}))
    n->backward = differentiable([](Flow& g) { g.give(0, g.take()); });  // give() sums
  return y;
}

Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step) {
  return partial_view("slice", x, [=](const Tensor& t) { return detached::slice(t, dim, begin, end, step); });
}

Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length) {
  return partial_view("slice", x, [=](const Tensor& t) { return detached::narrow(t, dim, begin, length); });
}

Tensor select(const Tensor& x, int dim, int64_t index) {
  const int d = normalize_dim(dim, x.rank(), "select");
  const int64_t i = index < 0 ? index + x.shape()[d] : index;
  check(i >= 0 && i < x.shape()[d], "select: index ", index, " is outside of dimension ", dim, " of shape ", x.shape());
  return squeeze(slice(x, d, i, i + 1), d);
}

namespace {
// Views of the parts, without graph.
std::vector<Tensor> places(const Tensor& x, const std::vector<int64_t>& sizes, int d) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (int64_t s : sizes) {
    parts.push_back(detached::narrow(x, d, at, s));
    at += s;
  }
  return parts;
}
}  // namespace

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim) {
  const int d = normalize_dim(dim, x.rank(), "split");
  int64_t total = 0;
  for (int64_t s : sizes) {
    check(s >= 0, "split: size ", s, " is negative");
    total = checked_add(total, s, "split");
  }
  check(total == x.shape()[d], "split: sizes sum to ", total, ", dimension ", dim, " of shape ", x.shape(), " has ",
        x.shape()[d]);
  std::vector<Tensor> parts = places(x, sizes, d);
  if (parts.empty() || !is_floating(x.dtype())) return parts;
  // One node for all parts: a node for each would need a gradient of x's size for every part.
  if (auto* n = track("split", parts, {&x, 1}))
    n->backward = differentiable([count = static_cast<int>(sizes.size()), d](Flow& g) {
      std::vector<Tensor> parts;
      for (int i = 0; i < count; ++i) parts.push_back(g.out(i));
      g.give(0, cat(parts, d));
    });
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t parts, int dim) {
  const int d = normalize_dim(dim, x.rank(), "chunk");
  check(parts > 0, "chunk: ", parts, " parts asked for, expected at least 1");
  const int64_t n = x.shape()[d], length = std::max<int64_t>(1, ceil_div(n, parts));
  std::vector<int64_t> sizes;
  for (int64_t left = n; left > 0 || sizes.empty(); left -= sizes.back()) sizes.push_back(std::min(length, left));
  return split(x, sizes, d);
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  const int d = normalize_dim(dim, x.rank(), "unbind");
  std::vector<Tensor> parts = split(x, std::vector<int64_t>(static_cast<size_t>(x.shape()[d]), 1), d);
  for (Tensor& p : parts) p = squeeze(p, d);
  return parts;
}

Tensor unfold(const Tensor& x, int dim, int64_t size, int64_t step) {
  const int d = normalize_dim(dim, x.rank(), "unfold");
  const int64_t n = x.shape()[d];
  check(x.rank() < kMaxRank, "unfold: shape ", x.shape(), " already has the maximum rank of ", kMaxRank);
  check(size >= 1 && size <= n, "unfold: windows of ", size, " entries in dimension ", dim, " of shape ", x.shape());
  check(step >= 1, "unfold: step ", step, " is below 1");
  const auto windows = [=](const Tensor& t, int d) {
    Dims shape = t.shape(), strides = t.strides();
    shape[d] = (n - size) / step + 1;
    shape.push_back(size);
    strides.push_back(strides[d]);
    strides[d] *= step;
    return as_strided(t, shape, strides, t.impl().offset);
  };
  const auto cut = [windows, d](const Tensor& t) { return windows(t, d); };
  if (!is_floating(x.dtype())) return cut(x);
  const auto summed = [windows, d, n, shape = x.shape()](const Tensor& dy) {
    // Puts a window's entries next to the windows: together they are the positions windows(0, 1, ...) of the dimension.
    std::vector<int> order;
    for (int i = 0; i < shape.rank; ++i) {
      order.push_back(i);
      if (i == d) order.push_back(shape.rank);
    }
    const Tensor numbers = arange(n, {DType::i64, dy.device()}),
                 dx = empty(shape, {acc_dtype(dy.dtype()), dy.device()});
    const kernels::IndexShape s{numel(part(shape, 0, d), "unfold"), n, numel(part(shape, d + 1, shape.rank), "unfold")};
    kernels::add_rows.on(dy.device(), s, dx, detached::contiguous(detached::permute(dy, order)),
                         detached::contiguous(windows(numbers, 0)));
    return dx;
  };
  return detail::linear_map("unfold", x, cut, summed);
}

}  // namespace isonorm
