#include "autograd/methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/view.h"

namespace isonorm {

Tensor Tensor::sum(const DimList& dims, bool keepdim) const { return isonorm::sum(*this, dims, keepdim); }
Tensor Tensor::mean(const DimList& dims, bool keepdim) const { return isonorm::mean(*this, dims, keepdim); }
Tensor Tensor::amax(const DimList& dims, bool keepdim) const { return isonorm::amax(*this, dims, keepdim); }
Tensor Tensor::amin(const DimList& dims, bool keepdim) const { return isonorm::amin(*this, dims, keepdim); }
Tensor Tensor::var(const DimList& dims, double correction, bool keepdim) const {
  return isonorm::var(*this, dims, correction, keepdim);
}
Tensor Tensor::norm(const DimList& dims, bool keepdim) const { return isonorm::norm(*this, dims, keepdim); }
Tensor Tensor::argmax(int dim, bool keepdim) const { return isonorm::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(int dim, bool keepdim) const { return isonorm::argmin(*this, dim, keepdim); }
Tensor Tensor::prod(const DimList& dims, bool keepdim) const { return isonorm::prod(*this, dims, keepdim); }
Tensor Tensor::std(const DimList& dims, double correction, bool keepdim) const {
  return isonorm::std(*this, dims, correction, keepdim);
}
Tensor Tensor::median() const { return isonorm::median(*this); }
Tensor Tensor::cumsum(int dim) const { return isonorm::cumsum(*this, dim); }
Tensor Tensor::any(const DimList& dims, bool keepdim) const { return isonorm::any(*this, dims, keepdim); }
Tensor Tensor::all(const DimList& dims, bool keepdim) const { return isonorm::all(*this, dims, keepdim); }
Tensor Tensor::nonzero() const { return isonorm::nonzero(*this); }
Tensor Tensor::isnan() const { return isonorm::isnan(*this); }
Tensor Tensor::isinf() const { return isonorm::isinf(*this); }
Tensor Tensor::isfinite() const { return isonorm::isfinite(*this); }
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const { return isonorm::masked_fill(*this, mask, value); }
bool Tensor::equal(const Tensor& other) const { return isonorm::equal(*this, other); }
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return isonorm::allclose(*this, other, rtol, atol, equal_nan);
}
Tensor Tensor::softmax(int dim) const { return isonorm::softmax(*this, dim); }
Tensor Tensor::reshape(const Dims& shape) const { return isonorm::reshape(*this, shape); }
Tensor Tensor::view(const Dims& shape) const { return isonorm::view(*this, shape); }
Tensor Tensor::flatten(int first, int last) const { return isonorm::flatten(*this, first, last); }
Tensor Tensor::transpose(int a, int b) const { return isonorm::transpose(*this, a, b); }
Tensor Tensor::permute(const std::vector<int>& order) const { return isonorm::permute(*this, order); }
Tensor Tensor::squeeze(int dim) const { return isonorm::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(int dim) const { return isonorm::unsqueeze(*this, dim); }
Tensor Tensor::expand(const Dims& shape) const { return isonorm::expand(*this, shape); }
Tensor Tensor::contiguous() const { return isonorm::contiguous(*this); }
Tensor Tensor::clone() const { return isonorm::clone(*this); }
Tensor Tensor::detach() const { return isonorm::detach(*this); }
Tensor Tensor::to(Device device) const { return isonorm::to(*this, device); }
Tensor Tensor::to(DType dtype) const { return isonorm::to(*this, dtype); }
Tensor Tensor::matmul(const Tensor& other) const { return isonorm::matmul(*this, other); }
Tensor Tensor::pow(double p) const { return isonorm::pow(*this, p); }
Tensor Tensor::clamp(Scalar lo, Scalar hi) const { return isonorm::clamp(*this, lo, hi); }
Tensor Tensor::abs() const { return isonorm::abs(*this); }
Tensor Tensor::exp() const { return isonorm::exp(*this); }
Tensor Tensor::log() const { return isonorm::log(*this); }
Tensor Tensor::sqrt() const { return isonorm::sqrt(*this); }
Tensor Tensor::square() const { return isonorm::square(*this); }
Tensor Tensor::relu() const { return isonorm::relu(*this); }
Tensor Tensor::sigmoid() const { return isonorm::sigmoid(*this); }
Tensor Tensor::tanh() const { return isonorm::tanh(*this); }
Tensor Tensor::logsumexp(const DimList& dims, bool keepdim) const { return isonorm::logsumexp(*this, dims, keepdim); }
TopK Tensor::topk(int64_t k, int dim) const { return isonorm::topk(*this, k, dim); }
TopK Tensor::sort(int dim, bool descending) const { return isonorm::sort(*this, dim, descending); }
Tensor Tensor::argsort(int dim, bool descending) const { return isonorm::argsort(*this, dim, descending); }
Tensor Tensor::masked_select(const Tensor& mask) const { return isonorm::masked_select(*this, mask); }
Tensor Tensor::index_select(int dim, const Tensor& ids) const { return isonorm::index_select(*this, dim, ids); }
Tensor Tensor::gather(int dim, const Tensor& index) const { return isonorm::gather(*this, dim, index); }
Tensor Tensor::scatter(int dim, const Tensor& index, const Tensor& src) const {
  return isonorm::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter_add(int dim, const Tensor& index, const Tensor& src) const {
  return isonorm::scatter_add(*this, dim, index, src);
}
Tensor Tensor::index_add(int dim, const Tensor& ids, const Tensor& src) const {
  return isonorm::index_add(*this, dim, ids, src);
}
Tensor Tensor::log_softmax(int dim) const { return isonorm::log_softmax(*this, dim); }
TopK Tensor::median(int dim, bool keepdim) const { return isonorm::median(*this, dim, keepdim); }
Tensor Tensor::quantile(double q) const { return isonorm::quantile(*this, q); }
Tensor Tensor::quantile(double q, int dim, bool keepdim) const { return isonorm::quantile(*this, q, dim, keepdim); }
Tensor Tensor::max() const { return isonorm::amax(*this); }
Tensor Tensor::min() const { return isonorm::amin(*this); }

namespace {
TopK values_at(const Tensor& x, const Tensor& at, int dim, bool keepdim) {
  const Tensor values = isonorm::gather(x, dim, at);
  return {keepdim ? values : squeeze(values, dim), keepdim ? at : squeeze(at, dim)};
}
}  // namespace

TopK Tensor::max(int dim, bool keepdim) const { return values_at(*this, argmax(dim, true), dim, keepdim); }
TopK Tensor::min(int dim, bool keepdim) const { return values_at(*this, argmin(dim, true), dim, keepdim); }
Tensor Tensor::t() const {
  check(rank() == 2, "t: shape is ", shape(), ", expected a matrix");
  return isonorm::transpose(*this, 0, 1);
}
Tensor Tensor::expand_as(const Tensor& other) const { return isonorm::expand(*this, other.shape()); }
Tensor Tensor::view_as(const Tensor& other) const { return isonorm::view(*this, other.shape()); }
Tensor Tensor::slice(int dim, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step) const {
  return isonorm::slice(*this, dim, begin.value_or(0), end.value_or(std::numeric_limits<int64_t>::max()), step);
}
Tensor Tensor::narrow(int dim, int64_t begin, int64_t length) const {
  return isonorm::narrow(*this, dim, begin, length);
}
Tensor Tensor::select(int dim, int64_t index) const { return isonorm::select(*this, dim, index); }
std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int dim) const {
  return isonorm::split(*this, sizes, dim);
}
std::vector<Tensor> Tensor::chunk(int64_t parts, int dim) const { return isonorm::chunk(*this, parts, dim); }
std::vector<Tensor> Tensor::unbind(int dim) const { return isonorm::unbind(*this, dim); }
Tensor Tensor::unfold(int dim, int64_t size, int64_t step) const { return isonorm::unfold(*this, dim, size, step); }
Tensor Tensor::flip(const std::vector<int>& dims) const { return isonorm::flip(*this, dims); }
Tensor Tensor::repeat(const std::vector<int64_t>& times) const { return isonorm::repeat(*this, times); }
Tensor Tensor::repeat_interleave(int64_t times, std::optional<int> dim) const {
  return dim ? isonorm::repeat_interleave(*this, times, *dim) : isonorm::repeat_interleave(flatten(), times, 0);
}
Tensor Tensor::tril(int64_t diagonal) const { return isonorm::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return isonorm::triu(*this, diagonal); }
Tensor Tensor::diag(int64_t diagonal) const { return isonorm::diag(*this, diagonal); }
Tensor Tensor::dot(const Tensor& other) const { return isonorm::dot(*this, other); }
Tensor Tensor::pow(const Tensor& p) const { return isonorm::pow(*this, p); }
Tensor Tensor::clamp_min(Scalar lo) const { return isonorm::clamp_min(*this, lo); }
Tensor Tensor::clamp_max(Scalar hi) const { return isonorm::clamp_max(*this, hi); }
Tensor Tensor::sign() const { return isonorm::sign(*this); }
Tensor Tensor::floor() const { return isonorm::floor(*this); }
Tensor Tensor::ceil() const { return isonorm::ceil(*this); }
Tensor Tensor::round() const { return isonorm::round(*this); }
Tensor Tensor::expm1() const { return isonorm::expm1(*this); }
Tensor Tensor::log2() const { return isonorm::log2(*this); }
Tensor Tensor::log1p() const { return isonorm::log1p(*this); }
Tensor Tensor::rsqrt() const { return isonorm::rsqrt(*this); }
Tensor Tensor::reciprocal() const { return isonorm::reciprocal(*this); }
Tensor Tensor::sin() const { return isonorm::sin(*this); }
Tensor Tensor::cos() const { return isonorm::cos(*this); }
Tensor Tensor::erf() const { return isonorm::erf(*this); }
Tensor Tensor::logical_not() const { return isonorm::logical_not(*this); }
Tensor Tensor::minimum(const Tensor& other) const { return isonorm::minimum(*this, other); }
Tensor Tensor::maximum(const Tensor& other) const { return isonorm::maximum(*this, other); }

Tensor Tensor::require_grad(bool on) const { return isonorm::require_grad(*this, on); }
bool Tensor::requires_grad() const { return isonorm::requires_grad(*this); }
void Tensor::backward(const Tensor& cotangent) const { isonorm::backward(*this, cotangent); }

namespace {

// The positions that an index tensor chooses, one tensor for each dimension that it indexes.
std::vector<Tensor> positions(const Tensor& index, const Dims& dims) {
  if (index.dtype() == DType::i64) return {index};
  check(index.shape() == dims, "index: a mask of shape ", index.shape(), " for dimensions of shape ", dims);
  return unbind(nonzero(index), 1);
}

// The number of dimensions that an index consumes.
int consumes(const Index& index) {
  const Tensor* t = std::get_if<Tensor>(&index.value);
  if (!t) return index.value.index() < 2;
  check(t->dtype() == DType::i64 || (t->dtype() == DType::u8 && t->rank() > 0), "index: a tensor ", t->dtype(), ' ',
        t->shape(), ", expected positions (i64) or a mask (u8)");
  return t->dtype() == DType::i64 ? 1 : t->rank();
}

}  // namespace

Index::Index(int64_t i, bool positive) : value(i) {
  check(i >= 0 || !positive, "index: position ", static_cast<uint64_t>(i), " is beyond the largest int64_t");
}
Index::Index(Slice slice) : value(slice) {}
Index::Index(std::nullopt_t) : value(None) {}
Index::Index(EllipsisIndex) : value(Ellipsis) {}
Index::Index(const Tensor& ids) : value(ids) {}
Index::Index(const Index& other) = default;
Index& Index::operator=(const Index& other) = default;
Index::~Index() = default;

Indexed Tensor::operator[](const Index& index) const { return {*this, {index}}; }

Indexed::Indexed(const Indexed& other) = default;
Indexed::~Indexed() = default;
Indexed::Indexed(const Tensor& x, const std::vector<Index>& given) : Tensor(x) {
  std::vector<Index> indices = given;
  for (Index& index : indices)
    if (const Tensor* t = std::get_if<Tensor>(&index.value); t && t->rank() == 0 && t->dtype() == DType::i64)
      index = t->to_vector<int64_t>()[0];
  int used = 0, dots = 0;
  for (const Index& index : indices) {
    used += consumes(index);
    dots += std::holds_alternative<EllipsisIndex>(index.value);
  }
  check(used <= x.rank(), "index: ", used, " indices for a tensor of rank ", x.rank(), ", shape ", x.shape());
  check(dots <= 1, "index: Ellipsis is given ", dots, " times");

  Tensor v = x;
  int d = 0;
  std::vector<int> dims;  // dimensions that have an index tensor
  std::vector<Tensor> ids;
  for (const Index& index : indices) {
    if (const auto* i = std::get_if<int64_t>(&index.value)) {
      v = isonorm::select(v, d, *i);
    } else if (const auto* s = std::get_if<Slice>(&index.value)) {
      v = isonorm::slice(v, d++, s->begin.value_or(0), s->end.value_or(std::numeric_limits<int64_t>::max()), s->step);
    } else if (const auto* t = std::get_if<Tensor>(&index.value)) {
      for (Tensor& p : positions(*t, part(v.shape(), d, d + consumes(index)))) ids.push_back(p), dims.push_back(d++);
    } else if (std::holds_alternative<EllipsisIndex>(index.value)) {
      d += x.rank() - used;
    } else {
      v = isonorm::unsqueeze(v, d++);
    }
  }
  if (ids.empty()) {
    Tensor::operator=(v);
    return;
  }

  const int count = static_cast<int>(ids.size());
  int first = dims.front();
  if (dims.back() != first + count - 1) {
    std::vector<int> order = dims;
    for (int i = 0; i < v.rank(); ++i)
      if (std::find(dims.begin(), dims.end(), i) == dims.end()) order.push_back(i);
    v = isonorm::permute(v, order);
    first = 0;
  }
  Dims grid;
  for (const Tensor& p : ids) grid = broadcast_shapes(grid, p.shape(), "index");
  std::vector<int64_t> chosen(isonorm::numel(grid, "index"));
  for (int i = 0; i < count; ++i) {
    const int64_t n = v.shape()[first + i];
    const std::vector<int64_t> p = detached::expand(ids[i], grid).to_vector<int64_t>();
    for (size_t k = 0; k < p.size(); ++k) {
      check(p[k] >= -n && p[k] < n, "index: position ", p[k], " is outside of dimension ", dims[i], " of size ", n);
      chosen[k] = chosen[k] * n + p[k] + (p[k] < 0 ? n : 0);
    }
  }
  // v's shape with `middle` in place of the indexed dimensions.
  const auto with = [&](const Dims& middle) {
    Dims shape = part(v.shape(), 0, first);
    for (int64_t s : middle) shape.push_back(s);
    for (int64_t s : part(v.shape(), first + count, v.rank())) shape.push_back(s);
    return shape;
  };
  const Dims merged = with({isonorm::numel(part(v.shape(), first, first + count), "index")});
  const Tensor at = isonorm::to(from_vector(chosen, {static_cast<int64_t>(chosen.size())}), x.device());
  Tensor::operator=(isonorm::reshape(isonorm::index_select(isonorm::reshape(v, merged), first, at), with(grid)));
  choice_ = {v, merged, first, std::move(chosen)};
}

void Indexed::operator=(const Tensor& value) && {
  const bool mine = takes_gradient(*this);
  check(!mine && !takes_gradient(value), "index: assignment is not recorded, and the ", mine ? "tensor" : "value",
        " of shape ", mine ? shape() : value.shape(), " takes a gradient: detach it, or assign under NoGrad");
  check(broadcast_shapes(shape(), value.shape(), "index") == shape(), "index: a value of shape ", value.shape(),
        " does not broadcast to ", shape());
  check(is_floating(dtype()) || !is_floating(value.dtype()), "index: a value of ", value.dtype(), " for a tensor of ",
        dtype(), ", which would lose its fraction: say so with .to");
  if (!choice_) return copy_into(*this, value);
  const NoGrad no_grad;
  const auto& [from, merged, dim, chosen] = *choice_;
  const auto count = static_cast<int64_t>(chosen.size());
  Dims behind = merged, column;
  behind[dim] = count;
  for (int i = 0; i < behind.rank; ++i) column.push_back(i == dim ? count : 1);
  const Tensor given = isonorm::expand(isonorm::to(isonorm::to(value, dtype()), device()), shape());
  const Tensor at = isonorm::expand(isonorm::to(from_vector(chosen, column), device()), behind);
  copy_into(from,
            isonorm::reshape(isonorm::scatter(isonorm::reshape(from, merged), dim, at, isonorm::reshape(given, behind)),
                             from.shape()));
}

Indexed& Indexed::operator=(const Tensor& value) & {
  Tensor::operator=(value);
  choice_.reset();
  return *this;
}

void Indexed::operator=(Scalar value) && {
  check(is_floating(dtype()) || value == std::trunc(value), "x[...] = ", value, ": the dtype is ", dtype());
  std::move(*this) = full({}, value, options());
}

}  // namespace isonorm
