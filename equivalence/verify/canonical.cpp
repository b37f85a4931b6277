#include "equivalence/verify/canonical.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/rows.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Plan;
using streams::Role;
using streams::total;

// Half the distance from x to the next number of its format: rounding to nearest moves no value by more. In bf16 2^-15
// more, because f64 is rounded to it by way of f32.
class HalfUlp {
 public:
  explicit HalfUlp(NumberFormat format)
      : steps_(format), half_(format.dtype == DType::bf16 ? (1 + 0x1p-15) / 2 : 0.5) {}
  double operator()(double x) const {
    return std::isfinite(x) ? std::max(steps_.at(x) * half_, 0x1p-1074) : NAN;  // half of f64's least step would be 0
  }

 private:
  Steps steps_;
  double half_;
};

// M x for the values, and bounds for rounding and size, which are never negative.
void apply(const streams::Map& map, Carried& x) {
  map.apply(x.value);
  for (auto* of : {&x.rounding, &x.size}) map.bound_errors(*of);
}

// LayerNorm without gain and bias. With c = P x, s = sqrt(mean c^2 + eps) and |dx| <= e: |dc| <= f = e + mean e,
// |ds| <= r = sqrt(mean f^2), and c / s moves by at most (f + |c / s| r) / (s - r).
void put_through_norm(Carried& x, double eps) {
  apply(streams::Map::recentre(static_cast<int64_t>(x.value.size())), x);
  const auto root = [](const std::vector<double>& of, double more) {
    double squares = 0;
    for (double v : of) squares += v * v;
    return std::sqrt(squares / static_cast<double>(of.size()) + more);
  };
  const double s = root(x.value, eps), r = root(x.rounding, 0);
  for (size_t i = 0; i < x.value.size(); ++i) {
    x.value[i] /= s, x.size[i] /= s;
    x.rounding[i] = s > r ? (x.rounding[i] + std::abs(x.value[i]) * r) / (s - r) : INFINITY;
  }
}

// How far two roundings move a product: |x| e(y) + e(x) |y| + e(x) e(y).
double rounding_of_product(const Carried& x, const Carried& y, size_t i) {
  return x.size[i] * y.rounding[i] + x.rounding[i] * (y.size[i] + y.rounding[i]);
}

// Replaces x by `row`, which is x^T Q. An entry is x times a unit vector, so it is off by at most the length of
// x's errors.
void rotate(Carried& x, const double* row, double error) {
  const auto length = [](const std::vector<double>& of) {
    double squares = 0;
    for (double v : of) squares += v * v;
    return std::sqrt(squares);
  };
  const double size = length(x.size), rounding = length(x.rounding) + size * error;
  std::copy_n(row, x.value.size(), x.value.begin());
  std::ranges::fill(x.rounding, rounding), std::ranges::fill(x.size, size);
}

void multiply(Carried& x, const Carried& factors) {
  for (size_t i = 0; i < x.value.size(); ++i) {
    x.rounding[i] = rounding_of_product(x, factors, i);
    x.value[i] *= factors.value[i], x.size[i] *= factors.size[i];
  }
}

void add(Carried& x, const Carried& y) {
  for (size_t i = 0; i < x.value.size(); ++i)
    x.value[i] += y.value[i], x.rounding[i] += y.rounding[i], x.size[i] += y.size[i];
}

}  // namespace

void Carried::resize(size_t n) { value.resize(n), rounding.resize(n), size.resize(n); }

void Canonical::Rows::Stored::read(int64_t row, Carried& x) const {
  const int64_t n = values.size(1);
  x.resize(static_cast<size_t>(n));
  const double* from = values.data<double>() + row * n;
  const double* other = partner.defined() ? partner.data<double>() + row * n : nullptr;
  const HalfUlp half_ulp(format);
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double half = half_ulp(from[i]);
    largest = std::max(largest, half);
    x.value[i] = from[i], x.size[i] = std::abs(from[i]);
    x.rounding[i] = other && other[i] == from[i] ? 0 : half;
  }
  x.flip = 2 * largest;
}

Dims Canonical::Rows::shape() const { return {count_, of_bias_ ? 1 : map_ ? map_->outputs() : weight_.values.size(1)}; }

void Canonical::Rows::read(int64_t row, Carried& x) const {
  if (!of_bias_) {
    weight_.read(row, x);
    if (eps_) put_through_norm(x, *eps_);
    if (!factors_.value.empty()) multiply(x, factors_);
    if (!beta_.value.empty()) add(x, beta_);
    if (rotated_.defined()) rotate(x, rotated_.data<double>() + row * rotated_.size(1), rotation_error_);
    if (map_) apply(*map_, x);
    // Each stored entry was rounded to either neighbour, so it is off by at most a whole ulp. The entry that is minus
    // their sum is off by no more than with the nearer neighbours (sum_rounding.h).
    if (rounded_with_sum_)
      for (size_t i = 0; i + 1 < x.rounding.size(); ++i) x.rounding[i] *= 2;
    return;
  }
  if (bias_.values.defined())
    bias_.read(row, x);
  else
    x.resize(1), x.value[0] = x.rounding[0] = x.size[0] = x.flip = 0;
  if (beta_.value.empty()) return;
  Carried folded;  // the contribution of beta
  for (int64_t part = 0; part < parts_; ++part) {
    weight_.read(row * parts_ + part, folded);
    multiply(folded, beta_);
    x.value[0] += total(folded.value) * factor_;
    x.rounding[0] += total(folded.rounding) * factor_, x.size[0] += total(folded.size) * factor_;
  }
}

Canonical::Canonical(const Piece& piece, bool centred, const TensorMap* partner)
    : piece_(piece), state_(piece.state), plan_(piece.plan), partner_(partner) {
  std::set<std::string> touching;  // tensors that touch the stream: these are rounded, not exact
  std::set<std::string> unread;    // kept gains and biases that no reader reads through
  for (const Plan::Norm& n : plan_.norms) {
    touching.insert({n.weight, n.bias});
    if (!plan_.is_read(n) && !plan_.is_behind_table(n)) unread.insert({n.weight, n.bias});
  }
  for (const Plan::Writer& w : plan_.writers) {
    touching.insert({w.name, w.scale});
    if (centred && state_.find(w.name)) parts_.push_back({Kind::writer, w.name});
  }
  for (const Plan::Reader& r : plan_.readers) {
    if (!r.tied()) touching.insert({r.name, r.bias});
    if (!centred) continue;
    if (state_.find(r.tensor())) parts_.push_back({Kind::reader, r.name});
    parts_.push_back({Kind::bias, r.bias});
  }
  for (const auto& [name, tensor] : state_)
    if (const bool there = touching.contains(name); !there || !centred || unread.contains(name))
      parts_.push_back({there && is_floating(tensor.dtype()) ? Kind::stored : Kind::exact, name});
}

// dim -1: each entry is a slice of its own. parts: as in by_rows().
Canonical::Rows Canonical::stored(const std::string& name, int dim, int64_t parts) const {
  const Tensor& t = state_.at(name);
  const auto in_f64 = [dim, parts](const Tensor& x) {
    const Tensor rows = dim < 0 ? reshape(x, {x.numel(), 1}) : by_rows(x, dim, parts);
    return contiguous(rows.to(DType::f64));
  };
  Rows rows;
  rows.weight_.values = in_f64(detach(t)), rows.weight_.format = piece_.format(name);
  const Tensor* other = partner_ ? partner_->find(name) : nullptr;
  if (other && other->shape() == t.shape() && is_floating(other->dtype()))
    rows.weight_.partner = in_f64(detach(*other));
  rows.count_ = rows.weight_.values.size(0);
  return rows;
}

Carried Canonical::vector(const std::string& name) const {
  Carried x;
  stored(name, 0).weight_.read(0, x);
  return x;
}

Canonical::Rows Canonical::of_bias(const Plan::Reader& reader) const {
  Rows rows = stored(reader.tensor(), reader.dim, reader.parts);
  rows.of_bias_ = true, rows.parts_ = reader.parts, rows.count_ /= reader.parts;
  if (const Tensor* t = state_.find(reader.bias)) {
    check(t->numel() == rows.count_, "canonical form: '", reader.bias, "' has shape ", t->shape(), ", its reader ",
          rows.count_, " rows");
    rows.bias_ = stored(reader.bias, -1).weight_;
  }
  const Plan::Norm& n = plan_.norms[reader.norm];
  if (!n.bias.empty()) rows.beta_ = vector(n.bias), rows.factor_ = n.factor;
  return rows;
}

Canonical::Rows Canonical::of_writer(const Plan::Writer& writer) const {
  Rows rows = stored(writer.name, writer.dim);
  if (!writer.scale.empty()) rows.factors_ = vector(writer.scale);
  if (writer.norm < 0) return rows;
  const Plan::Norm& n = plan_.norms[writer.norm];
  rows.eps_ = n.eps;
  if (!n.weight.empty()) rows.factors_ = vector(n.weight);
  if (!n.bias.empty()) rows.beta_ = vector(n.bias);
  return rows;
}

Canonical::Rows Canonical::of_reader(const Plan::Reader& reader) const {
  Rows rows = stored(reader.tensor(), reader.dim, reader.parts);
  const Plan::Norm& n = plan_.norms[reader.norm];
  if (plan_.stored_width() == plan_.width && !n.weight.empty()) rows.factors_ = vector(n.weight);
  return rows;
}

const Plan::Reader& Canonical::reader_of(const Part& part) const {
  const auto at =
      std::ranges::find(plan_.readers, part.name, part.kind == Kind::bias ? &Plan::Reader::bias : &Plan::Reader::name);
  check(at != plan_.readers.end(), "canonical form: there is no '", part.name, "'");
  return *at;
}

Canonical::Rows Canonical::rows(const Part& part) const {
  NoGrad no_grad;
  if (part.kind == Kind::stored) {
    const int last = state_.at(part.name).rank() - 1;
    const int dim = plan_.dim_of(part.name);
    return stored(part.name, dim >= 0 ? dim : last == 0 ? -1 : last);
  }
  if (part.kind == Kind::bias) return of_bias(reader_of(part));
  const bool writes = part.kind == Kind::writer;
  Rows rows = writes ? of_writer(*plan_.writer(part.name)) : of_reader(reader_of(part));
  if (plan_.rotation.defined()) {
    const Carried& f = rows.factors_;
    const Tensor x = f.value.empty() ? rows.weight_.values
                                     : rows.weight_.values * from_vector(f.value, {rows.weight_.values.size(1)});
    rows.rotated_ = contiguous(matmul(x, plan_.rotation)), rows.rotation_error_ = plan_.rotation_error;
  }
  // A tied table is expanded like a writer, since its head reads the raw table.
  const Role role = writes || reader_of(part).tied() ? Role::writer : Role::reader;
  const streams::FormRow& form = row_of(plan_.form);
  rows.map_ = form.canonical(role, plan_.width);
  rows.rounded_with_sum_ = role == Role::writer && form.rounds_with_sum;
  return rows;
}

std::vector<std::string> Canonical::sources(const Part& part) const {
  std::vector<std::string> names = {part.name};
  const auto add_norm = [&](int norm) {
    if (norm >= 0) names.insert(names.end(), {plan_.norms[norm].weight, plan_.norms[norm].bias});
  };
  if (const Plan::Writer* w = plan_.writer(part.name)) names.push_back(w->scale), add_norm(w->norm);
  for (const Plan::Reader& r : plan_.readers)
    if (r.name == part.name || r.bias == part.name) names.push_back(r.tensor()), add_norm(r.norm);
  return names;
}

}  // namespace isonorm::equivalence
