#include "distributed/parallel/collectives.h"

#include "autograd/node.h"
#include "core/view.h"

namespace isonorm::parallel {

using distributed::Group;

Tensor all_reduced(const Tensor& x, Group& group) {
  const Tensor sum = detached::clone(x);
  group.all_reduce(sum);
  return sum;
}

namespace {

int dim_of(const Tensor& x, int dim, int64_t parts) {
  const int d = dim < 0 ? dim + x.rank() : dim;
  check(d >= 0 && d < x.rank() && x.size(d) % parts == 0, "parallel: dimension ", dim, " of shape ", x.shape(), " for ",
        parts, " ranks, expected one that they share evenly");
  return d;
}

int64_t before(const Tensor& x, int d) {
  int64_t n = 1;
  for (int i = 0; i < d; ++i) n *= x.size(i);
  return n;
}

// gather: [.., n, ..] on every rank -> [.., ranks n, ..]. reduce_scatter: the inverse shapes.
Tensor gather(const Tensor& x, int dim, Group& group) {
  const int d = dim_of(x, dim, 1);
  Dims shape = x.shape();
  shape[d] *= group.size();
  const Tensor all = group.all_gather(detached::reshape(x, {1, before(x, d), -1}));
  return detached::reshape(detached::transpose(all, 0, 1), shape);
}
Tensor reduce_scatter(const Tensor& x, int dim, Group& group) {
  const int d = dim_of(x, dim, group.size());
  Dims shape = x.shape();
  shape[d] /= group.size();
  const Tensor parts = detached::transpose(detached::reshape(x, {before(x, d), group.size(), -1}), 0, 1);
  return detached::reshape(group.reduce_scatter(detached::contiguous(parts)), shape);
}
Tensor part(const Tensor& x, int dim, Group& group) {
  const int d = dim_of(x, dim, group.size());
  const int64_t n = x.size(d) / group.size();
  return detached::contiguous(detached::narrow(x, d, group.rank() * n, n));
}

// Records out = f(x) for autograd, with `back` as the map from the gradient of out to the gradient of x.
template <class Back> Tensor recorded(const char* name, Tensor out, const Tensor& x, Back back) {
  if (auto* n = track(name, {&out}, {&x}))
    n->backward = [back](Flow& g) {
      if (g.wants(0)) g.give(0, back(g.take()));
    };
  return out;
}

}  // namespace

Tensor sum_of_parts(const Tensor& x, Group& group) {
  return recorded("sum_of_parts", all_reduced(x, group), x, [](Tensor g) { return g; });
}
Tensor shared_by_ranks(const Tensor& x, Group& group) {
  return recorded("shared_by_ranks", detached::reshape(x, x.shape()), x,
                  [&group](const Tensor& g) { return all_reduced(g, group); });
}
Tensor own_part(const Tensor& x, int dim, Group& group) {
  return recorded("own_part", part(x, dim, group), x, [&group, dim](const Tensor& g) { return gather(g, dim, group); });
}
Tensor gathered_parts(const Tensor& x, int dim, Group& group, const Tensor& known) {
  const Tensor all = known.defined() ? detached::reshape(known, known.shape()) : gather(x, dim, group);
  return recorded("gathered_parts", all, x, [&group, dim](const Tensor& g) { return reduce_scatter(g, dim, group); });
}
Tensor whole_of_parts(const Tensor& x, int dim, Group& group) {
  return recorded("whole_of_parts", gather(x, dim, group), x,
                  [&group, dim](const Tensor& g) { return part(g, dim, group); });
}
Tensor sum_of_own_part(const Tensor& x, int dim, Group& group) {
  return recorded("sum_of_own_part", reduce_scatter(x, dim, group), x,
                  [&group, dim](const Tensor& g) { return gather(g, dim, group); });
}

}  // namespace isonorm::parallel
