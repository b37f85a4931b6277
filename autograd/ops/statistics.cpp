#include "autograd/ops/index.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/view.h"

namespace isonorm {

TopK median(const Tensor& x, int dim, bool keepdim) {
  const int d = normalize_dim(dim, x.rank(), "median");
  const int64_t n = x.shape()[d];
  check(n > 0, "median: dimension ", dim, " of shape ", x.shape(), " is empty");
  const TopK ascending = sort(detach(x), d);
  // sort() puts NaN last: if there is a NaN, the first one is chosen.
  const Tensor numbers = sum(eq(ascending.values, ascending.values), {d}, true);
  const Tensor middle = where(eq(numbers, static_cast<double>(n)), static_cast<double>((n - 1) / 2), numbers);
  const Tensor at = gather(ascending.indices, d, middle), values = gather(x, d, at);
  return {keepdim ? values : squeeze(values, d), keepdim ? at : squeeze(at, d)};
}

Tensor median(const Tensor& x) {
  check(x.numel() > 0, "median: shape ", x.shape(), " has no elements to choose from");
  return median(reshape(x, {-1}), 0).values;
}

Tensor quantile(const Tensor& x, double q, int dim, bool keepdim) {
  const int d = normalize_dim(dim, x.rank(), "quantile");
  check(is_floating(x.dtype()), "quantile: dtype is ", x.dtype(), ", expected f32, f64 or bf16");
  check(q >= 0 && q <= 1, "quantile: q is ", q, ", expected 0 to 1");
  const int64_t n = x.shape()[d];
  check(n > 0, "quantile: dimension ", dim, " of shape ", x.shape(), " is empty");
  const Tensor ascending = sort(to(x, acc_dtype(x.dtype())), d).values;
  const double place = q * static_cast<double>(n - 1), share = place - std::floor(place);
  const auto below = static_cast<int64_t>(place);
  const auto at = [&](int64_t i) { return narrow(ascending, d, i, 1); };
  Tensor value = at(below);
  if (share > 0) value = add(mul(value, 1 - share), mul(at(below + 1), share));
  const Tensor last = at(n - 1);  // NaN are last
  value = to(where(isnan(last), last, value), x.dtype());
  return keepdim ? value : squeeze(value, d);
}

Tensor quantile(const Tensor& x, double q) {
  check(x.numel() > 0, "quantile: shape ", x.shape(), " has no elements to choose from");
  return quantile(reshape(x, {-1}), q, 0);
}

Tensor unique(const Tensor& x) { return unique_all(x).values; }

Unique unique_all(const Tensor& x) {
  const int64_t n = x.numel();
  const TensorOptions ids{DType::i64, x.device()};
  const TopK ascending = sort(reshape(detach(x), {n}), 0);
  const Tensor& v = ascending.values;
  const Tensor later = ne(slice(v, 0, 1, n), narrow(v, 0, 0, std::max<int64_t>(n - 1, 0)));
  const Tensor first = narrow(cat({ones({1}, later.options()), later}), 0, 0, n);  // marks the first of equal values
  const Tensor begin = masked_select(arange(n, ids), first);
  const Tensor end = slice(cat({begin, full({1}, static_cast<double>(n), ids)}), 0, 1, begin.numel() + 1);
  const Tensor inverse = scatter(zeros({n}, ids), 0, ascending.indices, sub(cumsum(first, 0), 1));
  return {masked_select(v, first), reshape(inverse, x.shape()), sub(end, begin)};
}

Tensor nonzero(const Tensor& x) {
  const std::vector<uint8_t> set = ne(x, 0).to_vector<uint8_t>();
  const int rank = x.rank();
  std::vector<int64_t> at;
  for (size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    at.resize(at.size() + rank);
    auto rest = static_cast<int64_t>(i);
    for (int d = rank - 1; d >= 0; rest /= x.shape()[d--]) at[at.size() - rank + d] = rest % x.shape()[d];
  }
  const auto count = static_cast<int64_t>(std::count_if(set.begin(), set.end(), [](uint8_t s) { return s != 0; }));
  return to(from_vector(at, {count, rank}), x.device());
}

Tensor bincount(const Tensor& ids, const Tensor& weights, int64_t minlength) {
  check_same_device("bincount", ids, weights);
  check(ids.rank() == 1 && !is_floating(ids.dtype()), "bincount: ids are ", ids.dtype(), ' ', ids.shape(),
        ", expected integers of rank 1");
  check(minlength >= 0, "bincount: minlength is ", minlength, ", expected 0 or more");
  check(!weights.defined() || weights.shape() == ids.shape(), "bincount: ids ", ids.shape(), " and weights ",
        weights.defined() ? weights.shape() : Dims{}, " differ");
  const Tensor at = detached::to(ids, DType::i64), counted = weights.defined() ? weights : ones_like(at);
  int64_t length = minlength;
  if (at.numel() > 0) {
    check(amin(at).to_vector<int64_t>()[0] >= 0, "bincount: id ", amin(at).to_vector<int64_t>()[0], " is negative");
    length = std::max(length, checked_add(amax(at).to_vector<int64_t>()[0], 1, "bincount"));
  }
  return index_add(zeros({length}, counted.options()), 0, at, counted);
}

}  // namespace isonorm
