// Views: no element moves forward; backward undoes the view on the gradient.
#include "autograd/ops/shape.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/kernels/copy.h"
#include "core/round_up.h"

namespace isonorm {
namespace {

// Strides of `shape` over x's storage, where x's elements can be addressed so; false where only a copy can.
bool reshape_strides(const Tensor& x, const Dims& shape, Dims& strides) {
  strides = contiguous_strides(shape);
  if (x.is_contiguous()) return true;
  int d = x.rank() - 1;        // dimension of x to be used up next
  int64_t left = 1, step = 1;  // elements of the current run of x not yet used, and the distance between them
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    while (left == 1 && d >= 0) {
      left = x.shape()[d];
      step = x.strides()[d--];
    }
    while (left % shape[i] != 0 && d >= 0 && x.strides()[d] == left * step) left *= x.shape()[d--];
    if (left % shape[i] != 0) return false;
    strides[i] = step;
    left /= shape[i];
    step *= shape[i];
  }
  return true;
}

Dims complete_shape(const Tensor& x, const Dims& wish, const char* op) {
  Dims shape = wish;
  int open = -1;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] != -1) continue;
    check(open < 0, op, ": more than one size is -1 in ", wish);
    open = i;
  }
  if (open >= 0) {
    shape[open] = 1;
    const int64_t known = numel(shape, op);
    check(known > 0 && x.numel() % known == 0, op, ": shape ", x.shape(), " does not divide into ", wish);
    shape[open] = x.numel() / known;
  }
  const int64_t count = numel(shape, op);
  check(count == x.numel(), op, ": shape ", x.shape(), " has ", x.numel(), " elements, ", shape, " has ", count);
  return shape;
}

// A view that shows some elements of x, each once: the gradient is 0 elsewhere. `pick` makes the same view of the
// gradient's tensor.
template <class Pick> Tensor partial_view(const char* name, const Tensor& x, Pick pick) {
  Tensor y = pick(x);
  if (!is_floating(x.dtype())) return y;
  if (Node* n = track(name, {&y}, {&x}))
    n->backward = [pick, shape = x.shape()](Flow& g) {
      Tensor dx = empty(shape, g.out().options());
      kernels::fill(dx, 0);
      copy_into(pick(dx), g.out());
      g.give(0, dx);
    };
  return y;
}

Tensor restride(const Tensor& x, const Dims& shape, const Dims& strides) {
  return as_strided(x, shape, strides, x.impl().offset);
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty_like(x);
  kernels::copy(y, x);
  if (!is_floating(x.dtype())) return y;
  if (Node* n = track("contiguous", {&y}, {&x})) n->backward = [](Flow& g) { g.give(0, g.take()); };
  return y;
}

Tensor reshape(const Tensor& x, const Dims& wish) {
  const Dims shape = complete_shape(x, wish, "reshape");
  if (shape == x.shape()) return x;
  Dims strides;
  Tensor y;
  if (reshape_strides(x, shape, strides)) {
    y = restride(x, shape, strides);
  } else {
    y = empty(shape, x.options());
    kernels::copy(restride(y, x.shape(), contiguous_strides(x.shape())), x);
  }
  if (!is_floating(x.dtype())) return y;
  if (Node* n = track("reshape", {&y}, {&x}))
    n->backward = [shape = x.shape()](Flow& g) { g.give(0, reshape(g.out(), shape)); };
  return y;
}

Tensor view(const Tensor& x, const Dims& wish) {
  const Dims shape = complete_shape(x, wish, "view");
  Dims strides;
  check(reshape_strides(x, shape, strides), "view: shape ", x.shape(), " with strides ", x.strides(),
        " cannot be seen as ", shape, " without a copy; use reshape");
  return reshape(x, shape);
}

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
  check(static_cast<int>(order.size()) == x.rank(), "permute: ", order.size(), " dimensions given for rank ", x.rank());
  Dims shape, strides;
  std::vector<int> back(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    const int d = normalize_dim(order[i], x.rank(), "permute");
    check(back[d] < 0, "permute: dimension ", order[i], " is given twice");
    back[d] = static_cast<int>(i);
    shape.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
  }
  Tensor y = restride(x, shape, strides);
  if (!is_floating(x.dtype())) return y;
  if (Node* n = track("permute", {&y}, {&x})) n->backward = [back](Flow& g) { g.give(0, permute(g.out(), back)); };
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
  check(x.rank() < kMaxRank, "unsqueeze: shape ", x.shape(), " has the largest rank, ", kMaxRank);
  const int d = normalize_dim(dim, x.rank() + 1, "unsqueeze");
  Dims shape;
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == d) shape.push_back(1);
    if (i < x.rank()) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}

Tensor expand(const Tensor& x, const Dims& wish) {
  Dims shape = wish;
  const int shift = shape.rank - x.rank();
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] != -1) continue;
    check(i >= shift, "expand: size -1 at dimension ", i, " of ", wish, " keeps no size of ", x.shape());
    shape[i] = x.shape()[i - shift];
  }
  numel(shape, "expand");
  check(broadcast_shapes(x.shape(), shape, "expand") == shape, "expand: shape ", x.shape(), " does not stretch to ",
        shape);
  if (shape == x.shape()) return x;
  Dims strides;
  for (int i = 0; i < shape.rank; ++i)
    strides.push_back(i < shift || (x.shape()[i - shift] == 1 && shape[i] != 1) ? 0 : x.strides()[i - shift]);
  Tensor y = restride(x, shape, strides);
  if (!is_floating(x.dtype())) return y;
  if (Node* n = track("expand", {&y}, {&x})) n->backward = [](Flow& g) { g.give(0, g.take()); };  // give() sums
  return y;
}

Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step) {
  const int d = normalize_dim(dim, x.rank(), "slice");
  const int64_t n = x.shape()[d];
  check(step > 0, "slice: step ", step, " is not positive");
  const auto bound = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = bound(begin), length = ceil_div(std::max<int64_t>(0, bound(end) - from), step);
  return partial_view("slice", x, [d, from, length, step](const Tensor& t) {
    Dims shape = t.shape(), strides = t.strides();
    shape[d] = length;
    if (length > 1) strides[d] *= step;
    return as_strided(t, shape, strides, t.impl().offset + (length ? from * t.strides()[d] : 0));
  });
}

Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length) {
  const int d = normalize_dim(dim, x.rank(), "narrow");
  check(begin >= 0 && length >= 0 && begin <= x.shape()[d] - length, "narrow: [", begin, ", ", begin, " + ", length,
        ") is outside of dimension ", dim, " of shape ", x.shape());
  return slice(x, d, begin, begin + length);
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
  const NoGrad no_grad;
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (int64_t s : sizes) {
    parts.push_back(narrow(x, d, at, s));
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
  // One node for all of them: each its own would make a gradient of all of x for every part.
  if (Node* n = track("split", parts, {&x, 1}))
    n->backward = [sizes, d, shape = x.shape(), options = x.options()](Flow& g) {
      Tensor dx = empty(shape, options);
      kernels::fill(dx, 0);
      const std::vector<Tensor> to = places(dx, sizes, d);
      for (size_t i = 0; i < to.size(); ++i)
        if (g.has_out(static_cast<int>(i))) copy_into(to[i], g.out(static_cast<int>(i)));
      g.give(0, dx);
    };
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

}  // namespace isonorm
