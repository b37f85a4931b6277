#include "core/kernels/reduce.h"

#include <bit>

#include "core/view.h"

namespace isonorm::detached {

Tensor reduce(kernels::ReduceOp kind, const Tensor& x, DimSet dims, const Dims& shape, const char* op) {
  int begin = dims ? std::countr_zero(dims) : 0, end = std::bit_width(dims);
  Tensor source = x;
  if (std::popcount(dims) != end - begin) {
    std::vector<int> order;
    for (DimSet reduced : {0, 1})
      for (int d = 0; d < x.rank(); ++d)
        if ((dims >> d & 1) == reduced) order.push_back(d);
    source = permute(x, order);
    begin = x.rank() - std::popcount(dims), end = x.rank();
  }
  const auto size = [&](int from, int to) { return numel(part(source.shape(), from, to), op); };
  const kernels::ReduceShape s{size(0, begin), size(begin, end), size(end, x.rank())};
  Tensor out = empty(shape, x.options(), op);
  kernels::reduce.on(x.device(), kind, s, out, contiguous(source));
  return out;
}

Tensor sum_to(const Tensor& x, const Dims& shape, const char* op) {
  const int extra = x.rank() - shape.rank;
  DimSet dims = 0;
  for (int d = 0; d < x.rank(); ++d)
    if (d < extra || (shape.v[d - extra] == 1 && x.shape().v[d] != 1)) dims |= DimSet{1} << d;
  return reduce(kernels::ReduceOp::sum, x, dims, shape, op);
}

}  // namespace isonorm::detached
