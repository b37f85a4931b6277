#include "core/view.h"

#include <algorithm>
#include <utility>

#include "core/formulas/round_up.h"
#include "core/kernels/copy.h"
#include "core/tensor_map.h"

namespace isonorm::detached {
namespace {

// x's own handle if x has no graph, otherwise a detached one.
Tensor bare(const Tensor& x) { return x.impl().node ? detach(x) : x; }

Tensor restride(const Tensor& x, const Dims& shape, const Dims& strides) {
  return as_strided(x, shape, strides, x.impl().offset);
}

// Computes strides of `shape` over x's storage. Returns false if x's elements cannot be addressed that way, so that a
// copy is needed.
bool reshape_strides(const Tensor& x, const Dims& shape, Dims& strides) {
  strides = contiguous_strides(shape);
  if (x.is_contiguous()) return true;
  int d = x.rank() - 1;        // the dimension of x that is consumed next
  int64_t left = 1, step = 1;  // unused elements of the current run of x, and the distance between them
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (shape.v[i] == 1) continue;
    while (left == 1 && d >= 0) {
      left = x.shape().v[d];
      step = x.strides().v[d--];
    }
    while (left % shape.v[i] != 0 && d >= 0 && x.strides().v[d] == left * step) left *= x.shape().v[d--];
    if (left % shape.v[i] != 0) return false;
    strides.v[i] = step;
    left /= shape.v[i];
    step *= shape.v[i];
  }
  return true;
}

Dims complete_shape(const Tensor& x, const Dims& wish, const char* op) {
  Dims shape = wish;
  int open = -1;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.v[i] != -1) continue;
    check(open < 0, op, ": more than one size is -1 in ", wish);
    open = i;
  }
  if (open >= 0) {
    shape.v[open] = 1;
    const int64_t known = numel(shape, op);
    check(known > 0 && x.numel() % known == 0, op, ": shape ", x.shape(), " does not divide into ", wish);
    shape.v[open] = x.numel() / known;
  }
  const int64_t count = numel(shape, op);
  check(count == x.numel(), op, ": shape ", x.shape(), " has ", x.numel(), " elements, ", shape, " has ", count);
  return shape;
}

}  // namespace

Tensor clone(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels::copy(y, x);
  return y;
}

TensorMap clone(const TensorMap& tensors) {
  TensorMap copies;
  copies.set_torch(tensors.is_torch());
  for (const auto& [name, t] : tensors) copies.add(name, clone(t));
  return copies;
}

Tensor contiguous(const Tensor& x) {
  if (!x.defined()) return x;
  return x.is_contiguous() ? bare(x) : clone(x);
}

Tensor to(const Tensor& x, DType dtype) {
  if (!x.defined()) return x;
  if (x.dtype() == dtype) return bare(x);
  Tensor y = empty(x.shape(), {dtype, x.device()});
  kernels::copy(y, x);
  return y;
}

Tensor reshape(const Tensor& x, const Dims& wish) {
  const Dims shape = complete_shape(x, wish, "reshape");
  if (shape == x.shape()) return bare(x);
  Dims strides;
  if (reshape_strides(x, shape, strides)) return restride(x, shape, strides);
  Tensor y = empty(shape, x.options());
  kernels::copy(restride(y, x.shape(), contiguous_strides(x.shape())), x);
  return y;
}

Tensor view(const Tensor& x, const Dims& wish) {
  const Dims shape = complete_shape(x, wish, "view");
  Dims strides;
  check(reshape_strides(x, shape, strides), "view: shape ", x.shape(), " with strides ", x.strides(),
        " cannot be seen as ", shape, " without a copy; use reshape");
  return shape == x.shape() ? bare(x) : restride(x, shape, strides);
}

Tensor permute(const Tensor& x, const std::vector<int>& order) {
  check(static_cast<int>(order.size()) == x.rank(), "permute: ", order.size(), " dimensions given for rank ", x.rank());
  Dims shape, strides;
  bool taken[kMaxRank] = {};
  for (int dim : order) {
    const int d = normalize_dim(dim, x.rank(), "permute");
    check(!std::exchange(taken[d], true), "permute: dimension ", dim, " is given twice");
    shape.push_back(x.shape().v[d]);
    strides.push_back(x.strides().v[d]);
  }
  return restride(x, shape, strides);
}

Tensor transpose(const Tensor& x, int a, int b) {
  a = normalize_dim(a, x.rank(), "transpose"), b = normalize_dim(b, x.rank(), "transpose");
  Dims shape = x.shape(), strides = x.strides();
  std::swap(shape.v[a], shape.v[b]);
  std::swap(strides.v[a], strides.v[b]);
  return restride(x, shape, strides);
}

Tensor expand(const Tensor& x, const Dims& wish) {
  Dims shape = wish;
  const int shift = shape.rank - x.rank();
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.v[i] != -1) continue;
    check(i >= shift, "expand: size -1 at dimension ", i, " of ", wish, " keeps no size of ", x.shape());
    shape.v[i] = x.shape().v[i - shift];
  }
  numel(shape, "expand");
  check(broadcast_shapes(x.shape(), shape, "expand") == shape, "expand: shape ", x.shape(), " does not stretch to ",
        shape);
  if (shape == x.shape()) return bare(x);
  Dims strides;
  for (int i = 0; i < shape.rank; ++i)
    strides.push_back(i < shift || (x.shape().v[i - shift] == 1 && shape.v[i] != 1) ? 0 : x.strides().v[i - shift]);
  return restride(x, shape, strides);
}

Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end, int64_t step) {
  const int d = normalize_dim(dim, x.rank(), "slice");
  Dims shape = x.shape(), strides = x.strides();
  check(step > 0, "slice: step ", step, " is not positive");
  const auto bound = [n = shape.v[d]](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t from = bound(begin), length = ceil_div(std::max<int64_t>(0, bound(end) - from), step);
  shape.v[d] = length;
  if (length > 1) strides.v[d] *= step;
  return as_strided(x, shape, strides, x.impl().offset + (length ? from * x.strides().v[d] : 0));
}

Tensor narrow(const Tensor& x, int dim, int64_t begin, int64_t length) {
  const int d = normalize_dim(dim, x.rank(), "narrow");
  check(begin >= 0 && length >= 0 && begin <= x.shape().v[d] - length, "narrow: [", begin, ", ", begin, " + ", length,
        ") is outside of dimension ", dim, " of shape ", x.shape());
  return slice(x, d, begin, begin + length);
}

}  // namespace isonorm::detached
