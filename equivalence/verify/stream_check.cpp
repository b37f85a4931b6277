#include "equivalence/verify/stream_check.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/canonical.h"
#include "equivalence/convert/convertible.h"
#include "equivalence/coordinates/pairs.h"
#include "equivalence/verify/stream_reader.h"
#include "streams/coordinates.h"
#include "streams/map.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

constexpr int64_t kSamples = 3;  // rows of each writer
constexpr TensorOptions kF64{DType::f64};

const streams::Place* find_writer(const streams::Placement& layout, const std::string& name) {
  for (const streams::Place& p : layout.places)
    if (p.role == Role::writer && p.name == name) return &p;
  return nullptr;
}

// Adds to `rows` kSamples combinations of the slices of a writer, of whose `where.of` slices these begin at one.
void add_written(const TensorMap& state, const streams::Placement& layout, const streams::Place& p, Slices where,
                 Generator generator, Tensor& rows) {
  Tensor slices = by_rows(widened(state, p.name), p.dim);
  slices = behind_norm(state, layout, p, slices);
  if (!p.scale.empty()) slices = slices * widened(state, p.scale);
  const Tensor factors = randn({kSamples, where.of > 0 ? where.of : slices.size(0)}, kF64, generator);
  const Tensor sum = matmul(narrow(factors, 1, where.begin, slices.size(0)), slices);
  rows = rows.defined() ? rows + sum : sum;
}

// Rows with a mean that enter a stream where it is recentred once, in the coordinates of the form.
Tensor entering(const streams::Placement& layout, Generator generator) {
  const Tensor rows = randn({kSamples, layout.width}, kF64, generator) + randn({kSamples, 1}, kF64, generator);
  return streams::parameter_map(Role::writer, layout.form, layout.width)(rows, 1);
}

// The rows of each writer in turn, then of their sum: [(writers + 1) kSamples, stored width].
Tensor with_sum(std::vector<Tensor> rows) {
  Tensor all = rows[0];
  for (size_t i = 1; i < rows.size(); ++i) all = all + rows[i];
  rows.push_back(all);
  return cat(rows, 0);
}

const StreamReader& find(const std::vector<StreamReader>& readers, const std::string& name) {
  for (const StreamReader& r : readers)
    if (r.name == name) return r;
  check(false, "stream check: there is no reader '", name, "' in the second");
  return readers.front();
}

}  // namespace

std::vector<std::string> writers_of(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                    const streams::Placement& layout_b) {
  const auto has = [](const streams::Placement& layout, const streams::Place& p) {
    return std::any_of(layout.places.begin(), layout.places.end(),
                       [&](const streams::Place& q) { return q.role == Role::writer && q.name == p.name; });
  };
  std::vector<std::string> names;
  const auto look = [&](const TensorMap& state, const streams::Placement& own, const streams::Placement& other,
                        bool first) {
    for (const streams::Place& p : own.places) {
      if (p.role != Role::writer) continue;
      const bool both = has(other, p);
      check(both || largest_entry(widened(state, p.name)) == 0,
            "stream check: the two do not have the same writers: only one has '", p.name, "'");
      if (both && first) names.push_back(p.name);
    }
  };
  look(a, layout_a, layout_b, true);
  look(b, layout_b, layout_a, false);
  check(layout_a.recentred == layout_b.recentred, "stream check: the first is recentred at '", layout_a.recentred,
        "', the second at '", layout_b.recentred, "'");
  if (!layout_a.recentred.empty()) names.push_back(layout_a.recentred);
  check(!names.empty(), "stream check: the two have no writer in common");
  return names;
}

StreamComparison::StreamComparison(std::vector<std::string> writers, uint64_t seed)
    : writers_(std::move(writers)), seed_(seed), written_a_(writers_.size()), written_b_(writers_.size()) {}

void StreamComparison::write(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                             const streams::Placement& layout_b, Slices where) {
  NoGrad no_grad;
  for (size_t w = 0; w < writers_.size(); ++w) {
    const streams::Place *p = find_writer(layout_a, writers_[w]), *q = find_writer(layout_b, writers_[w]);
    if (!p || !q) continue;
    const Generator generator{seed_, uint64_t{w} << 40};
    add_written(a, layout_a, *p, where, generator, written_a_[w]);
    add_written(b, layout_b, *q, where, generator, written_b_[w]);
  }
}

void StreamComparison::read(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                            const streams::Placement& layout_b) {
  NoGrad no_grad;
  if (!rows_a_.defined()) {
    for (size_t w = 0; w < writers_.size(); ++w) {
      if (writers_[w] != layout_a.recentred) continue;
      const Generator generator{seed_, uint64_t{w} << 40};
      written_a_[w] = entering(layout_a, generator), written_b_[w] = entering(layout_b, generator);
    }
    rows_a_ = with_sum(std::move(written_a_)), rows_b_ = with_sum(std::move(written_b_));
  }
  const std::vector<StreamReader> readers_a = readers_of(a, layout_a), readers_b = readers_of(b, layout_b);
  check(!readers_a.empty() && readers_a.size() == readers_b.size(),
        "stream check: the two do not have the same readers: ", readers_a.size(), " and ", readers_b.size());
  for (const StreamReader& reader : readers_a) {
    const Tensor y = seen(a, layout_a, reader, rows_a_);
    const Tensor difference = abs(y - seen(b, layout_b, find(readers_b, reader.name), rows_b_));
    Seen& s = seen_[reader.name];
    s.scale = larger(s.scale, largest_entry(y)), s.whole = larger(s.whole, largest_entry(difference));
    s.of_writer.resize(writers_.size());
    for (size_t w = 0; w < writers_.size(); ++w)
      s.of_writer[w] =
          larger(s.of_writer[w], largest_entry(narrow(difference, 0, static_cast<int64_t>(w) * kSamples, kSamples)));
  }
}

StreamDeviation StreamComparison::result() const {
  StreamDeviation deviation;
  for (const auto& [name, s] : seen_) {
    const auto relative = [scale = s.scale](double d) { return d == 0 ? 0 : d / scale; };
    deviation.of[name] = relative(s.whole);
    deviation.worst = larger(deviation.worst, relative(s.whole));
    for (size_t w = 0; w < writers_.size(); ++w) {
      double& worst = deviation.of[writers_[w]];
      worst = larger(worst, relative(s.of_writer[w]));
    }
  }
  return deviation;
}

StreamDeviation stream_deviation(const TensorMap& a, const streams::Placement& layout_a, const TensorMap& b,
                                 const streams::Placement& layout_b, uint64_t seed) {
  NoGrad no_grad;
  StreamComparison comparison(writers_of(a, layout_a, b, layout_b), seed);
  comparison.write(a, layout_a, b, layout_b);
  comparison.read(a, layout_a, b, layout_b);
  return comparison.result();
}

template <class F> TensorMap moved(const TensorMap& state, Generator& generator, F&& dtype_of) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : widened(state)) {
    if (!is_floating(tensor.dtype())) {
      out.add(name, tensor);
      continue;
    }
    const Tensor up = randint(0, 2, tensor.shape(), tensor.device(), generator).to(DType::f64);
    out.add(name, tensor * (1 + epsilon(dtype_of(name)) * (2 * up + -1.0)));
  }
  return out;
}

TensorMap moved_by_rounding(const TensorMap& state, DType dtype, uint64_t seed) {
  Generator generator{seed, 0};
  return moved(state, generator, [dtype](const std::string&) { return dtype; });
}

TensorMap moved_by_rounding(const TensorMap& state, const TensorMap& partner, Generator& generator) {
  return moved(state, generator, [&](const std::string& name) {
    const DType own = state.at(name).dtype();
    const Tensor* other = partner.find(name);
    return other && is_floating(other->dtype()) && epsilon(other->dtype()) > epsilon(own) ? other->dtype() : own;
  });
}

TensorMap widened(const TensorMap& state) {
  NoGrad no_grad;
  TensorMap out;
  for (const auto& [name, tensor] : state)
    out.add(name, is_floating(tensor.dtype()) ? detach(tensor).to(DType::f64) : tensor);
  return out;
}

TensorMap centred(const TensorMap& state, const streams::Placement& layout) {
  NoGrad no_grad;
  const TensorMap wide = widened(state);
  if (layout.form != streams::Form::rms_norm) return wide;
  std::map<std::string, int> dim_of;
  for (const streams::Place& p : layout.places)
    if (p.role == Role::writer) dim_of[p.name] = p.dim;
  TensorMap out;
  for (const auto& [name, tensor] : wide)
    out.add(name, dim_of.contains(name) ? streams::recentre(tensor, dim_of[name]) : tensor);
  return out;
}

}  // namespace isonorm::equivalence
