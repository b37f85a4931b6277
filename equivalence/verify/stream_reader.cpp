#include "equivalence/verify/stream_reader.h"

#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/pieces.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

Tensor widened(const TensorMap& state, const std::string& name) { return detach(state.at(name)).to(DType::f64); }

std::vector<StreamReader> readers_of(const TensorMap& state, const streams::Plan& plan) {
  std::vector<StreamReader> readers;
  for (const streams::Place& p : plan.places) {
    if (p.role != streams::Role::reader) continue;
    readers.push_back({p.name, p.norm, by_rows(widened(state, p.name), p.dim), {}, p.name, p.bias, p.parts});
    if (state.find(p.bias)) readers.back().bias = flatten(widened(state, p.bias));
  }
  for (const streams::Layout::Tied& t : plan.tied) {
    const Tensor table = row_of(plan.form).table(plan.width)(widened(state, t.table), 1);
    readers.push_back({t.weight, t.norm, table, {}, t.table, {}});
  }
  return readers;
}

Tensor normalised(const TensorMap& state, const streams::Plan& plan, const streams::NormPlace& place,
                  const Tensor& rows, int64_t parts) {
  const auto of = [&](const std::string& name) { return name.empty() ? Tensor() : widened(state, name); };
  const Tensor gain = of(place.weight), bias = of(place.bias);
  std::vector<Tensor> all;
  for (int64_t i = 0; i < parts; ++i)
    all.push_back(normalize(i % 2 == 0 ? rows : -rows, {.kind = row_of(plan.form).norm, .eps = place.eps}, gain, bias) *
                  place.factor);
  return parts == 1 ? all[0] : cat(all, 1);
}

const streams::NormPlace& norm_of(const streams::Plan& plan, const StreamReader& reader) {
  const streams::NormPlace* norm = plan.find_norm(reader.norm);
  check(norm != nullptr, "stream: '", reader.name, "' reads through norm '", reader.norm, "', which is not there");
  return *norm;
}

Tensor seen(const TensorMap& state, const streams::Plan& plan, const StreamReader& reader, const Tensor& rows) {
  return linear(normalised(state, plan, norm_of(plan, reader), rows, reader.parts), reader.weight, reader.bias);
}

}  // namespace isonorm::equivalence
