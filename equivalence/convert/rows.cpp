#include "equivalence/convert/rows.h"

#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/state.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

Tensor by_rows(const Tensor& x, int dim, int64_t parts) {
  check(dim >= 0 && dim < x.rank(), "stream: a tensor of shape ", x.shape(), " has no dimension ", dim);
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != dim) order.push_back(i);
  order.push_back(dim);
  const int64_t length = x.size(dim) / parts;
  return reshape(permute(x, order), {length == 0 ? 0 : x.numel() / length, length});
}

Tensor behind_norm(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Writer& writer,
                   const Tensor& rows) {
  if (writer.norm < 0) return rows;
  const streams::Plan::Norm& n = plan.norms[writer.norm];
  const auto of = [&](const std::string& name) { return name.empty() ? Tensor() : widened(state, name); };
  return normalize(rows, {.kind = NormKind::layer, .eps = n.eps}, of(n.weight), of(n.bias));
}

ReaderWeights weights_of(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Reader& r) {
  const Tensor stored = widened(state, r.tensor());
  if (r.tied()) return {row_of(plan.form).table(plan.width)(stored, 1), {}};
  return {by_rows(stored, r.dim), state.find(r.bias) ? flatten(widened(state, r.bias)) : Tensor()};
}

Tensor normalised(const TensorMap& state, const streams::Plan& plan, const streams::Plan::Norm& place,
                  const Tensor& rows, int64_t parts) {
  const auto of = [&](const std::string& name) { return name.empty() ? Tensor() : widened(state, name); };
  const Tensor gain = of(place.weight), bias = of(place.bias);
  std::vector<Tensor> all;
  for (int64_t i = 0; i < parts; ++i)
    all.push_back(normalize(i % 2 == 0 ? rows : -rows, {.kind = row_of(plan.form).norm, .eps = place.eps}, gain, bias) *
                  place.factor);
  return parts == 1 ? all[0] : cat(all, 1);
}

}  // namespace isonorm::equivalence
