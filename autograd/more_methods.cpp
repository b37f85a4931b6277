// Methods of Tensor that are one call of the free function.
#include <limits>

#include "autograd/methods.h"
#include "autograd/ops/arrange.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/statistics.h"

namespace isonorm {

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
Tensor Tensor::clamp_min(double lo) const { return isonorm::clamp_min(*this, lo); }
Tensor Tensor::clamp_max(double hi) const { return isonorm::clamp_max(*this, hi); }
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

}  // namespace isonorm
