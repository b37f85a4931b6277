#include "equivalence/stream_check.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/canonical.h"
#include "equivalence/convertible.h"
#include "equivalence/pairs.h"
#include "nn/norm.h"

namespace isonorm::equivalence {
namespace {

using nn::Role;

constexpr int64_t kSamples = 3;  // rows of each writer
constexpr TensorOptions kF64{DType::f64};

Tensor exact(const TensorMap& state, const std::string& name) { return cast(detach(state.at(name)), DType::f64); }

struct Reader {
  std::string name, norm;
  Tensor weight, bias;  // [out, stored width], [out] or undefined
};

std::vector<Reader> readers_of(const TensorMap& state, const Layout& layout) {
  std::vector<Reader> readers;
  for (const Place& p : layout.places) {
    if (p.role != Role::reader) continue;
    readers.push_back({p.name, p.norm, by_rows(exact(state, p.name), p.dim), {}});
    if (state.find(p.bias)) readers.back().bias = flatten(exact(state, p.bias));
  }
  for (const TiedHead& t : layout.tied) {
    Tensor table = exact(state, t.table);
    // B (I + 11^T): what reads (v, -sum v) as the table of (B, -sum B) would.
    if (layout.form == nn::StreamForm::crms_norm) table = table + sum(table, {1}, true);
    readers.push_back({t.weight, t.norm, table, {}});
  }
  return readers;
}

// The writers that both have; a bias of zeros that only one has writes nothing.
std::vector<std::string> writers_of(const TensorMap& a, const Layout& layout_a, const TensorMap& b,
                                    const Layout& layout_b) {
  const auto has = [](const Layout& layout, const Place& p) {
    return std::any_of(layout.places.begin(), layout.places.end(),
                       [&](const Place& q) { return q.role == Role::writer && q.name == p.name; });
  };
  std::vector<std::string> names;
  const auto look = [&](const TensorMap& state, const Layout& own, const Layout& other, bool first) {
    for (const Place& p : own.places) {
      if (p.role != Role::writer) continue;
      const bool both = has(other, p);
      check(both || largest_entry(exact(state, p.name)) == 0,
            "stream check: the two do not have the same writers: only one has '", p.name, "'");
      if (both && first) names.push_back(p.name);
    }
  };
  look(a, layout_a, layout_b, true);
  look(b, layout_b, layout_a, false);
  check(!names.empty(), "stream check: the two have no writer in common");
  return names;
}

// kSamples rows of each writer in turn, then of their sum: [(writers + 1) kSamples, stored width].
Tensor written(const TensorMap& state, const Layout& layout, const std::vector<std::string>& writers, uint64_t seed) {
  std::vector<Tensor> rows;
  Tensor all;
  Generator generator{seed, 0};
  for (const std::string& name : writers) {
    const Place& p = *std::find_if(layout.places.begin(), layout.places.end(),
                                   [&](const Place& place) { return place.name == name; });
    Tensor slices = by_rows(exact(state, p.name), p.dim);
    if (!p.scale.empty()) slices = slices * exact(state, p.scale);
    rows.push_back(matmul(randn({kSamples, slices.size(0)}, kF64, generator), slices));
    all = all.defined() ? all + rows.back() : rows.back();
  }
  rows.push_back(all);
  return cat(rows, 0);
}

Tensor normalised(const TensorMap& state, const Layout& layout, const NormPlace& place, const Tensor& rows) {
  nn::StreamNorm norm(nn::Stream(layout.form, layout.width, nn::StreamStorage::mapped),
                      {.eps = place.eps, .affine = !place.weight.empty() || !place.bias.empty()});
  norm.to(DType::f64);
  if (!place.weight.empty()) copy_into(norm.weight, exact(state, place.weight));
  if (!place.bias.empty()) copy_into(norm.bias, exact(state, place.bias));
  nn::Residual r{rows, {}};
  return norm(r);
}

Tensor seen(const TensorMap& state, const Layout& layout, const Reader& reader, const Tensor& rows) {
  const NormPlace* norm = layout.find_norm(reader.norm);
  check(norm != nullptr, "stream check: '", reader.name, "' reads through norm '", reader.norm,
        "', which is not there");
  return linear(normalised(state, layout, *norm, rows), reader.weight, reader.bias);
}

const Reader& find(const std::vector<Reader>& readers, const std::string& name) {
  for (const Reader& r : readers)
    if (r.name == name) return r;
  check(false, "stream check: there is no reader '", name, "' in the second");
  return readers.front();
}

}  // namespace

StreamDeviation stream_deviation(const TensorMap& a, const Layout& layout_a, const TensorMap& b, const Layout& layout_b,
                                 uint64_t seed) {
  NoGrad no_grad;
  const std::vector<std::string> writers = writers_of(a, layout_a, b, layout_b);
  const std::vector<Reader> readers_a = readers_of(a, layout_a), readers_b = readers_of(b, layout_b);
  check(!readers_a.empty() && readers_a.size() == readers_b.size(),
        "stream check: the two do not have the same readers: ", readers_a.size(), " and ", readers_b.size());
  const Tensor rows_a = written(a, layout_a, writers, seed), rows_b = written(b, layout_b, writers, seed);
  StreamDeviation deviation;
  for (const Reader& reader : readers_a) {
    const Tensor y = seen(a, layout_a, reader, rows_a);
    const Tensor difference = abs(y - seen(b, layout_b, find(readers_b, reader.name), rows_b));
    const double scale = largest_entry(y), whole = largest_entry(difference);
    const auto relative = [&](double d) { return d == 0 ? 0 : d / scale; };
    deviation.of[reader.name] = relative(whole);
    deviation.worst = larger(deviation.worst, relative(whole));
    for (size_t w = 0; w < writers.size(); ++w) {
      double& worst = deviation.of[writers[w]];
      worst =
          larger(worst, relative(largest_entry(narrow(difference, 0, static_cast<int64_t>(w) * kSamples, kSamples))));
    }
  }
  return deviation;
}

template <class F> TensorMap moved(const TensorMap& state, uint64_t seed, F&& dtype_of) {
  NoGrad no_grad;
  TensorMap out;
  Generator generator{seed, 0};
  for (const auto& [name, tensor] : widened(state)) {
    if (!is_floating(tensor.dtype())) {
      out.add(name, tensor);
      continue;
    }
    const Tensor up = cast(randint(0, 2, tensor.shape(), kCpu, generator), DType::f64);
    out.add(name, tensor * (1 + epsilon(dtype_of(name)) * (2 * up + -1.0)));
  }
  return out;
}

TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed) {
  return moved(state, seed, [dtype](const std::string&) { return dtype; });
}

TensorMap moved_by_rounding(const TensorMap& state, const TensorMap& partner, uint64_t seed) {
  return moved(state, seed, [&](const std::string& name) {
    const DType own = state.at(name).dtype();
    const Tensor* other = partner.find(name);
    return other && is_floating(other->dtype()) && epsilon(other->dtype()) > epsilon(own) ? other->dtype() : own;
  });
}

TensorMap widened(const TensorMap& state) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : state)
    out.add(name, is_floating(tensor.dtype()) ? cast(detach(tensor), DType::f64) : tensor);
  return out;
}

TensorMap centred(const TensorMap& state, const Layout& layout) {
  NoGrad no_grad;
  const TensorMap wide = widened(state);
  if (layout.form != nn::StreamForm::rms_norm) return wide;
  std::map<std::string, int> dim_of;
  for (const Place& p : layout.places)
    if (p.role == Role::writer) dim_of[p.name] = p.dim;
  TensorMap out;
  for (const auto& [name, tensor] : wide)
    out.add(name, dim_of.contains(name) ? nn::recentre(tensor, dim_of[name]) : tensor);
  return out;
}

}  // namespace isonorm::equivalence
