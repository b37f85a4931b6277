#include "equivalence/verify/canonical.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

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
  for (const streams::NormPlace& n : plan_.norms) {
    touching.insert({n.weight, n.bias});
    const auto reads = [&](const auto& reader) { return reader.norm == n.name; };
    if (std::ranges::none_of(plan_.places, reads) && std::ranges::none_of(plan_.tied, reads))
      unread.insert({n.weight, n.bias});
  }
  for (const streams::Place& p : plan_.places) {
    touching.insert(p.scale);
    if (p.role == Role::neutral) continue;
    touching.insert(p.name);
    if (centred && state_.find(p.name))
      parts_.push_back({p.role == Role::writer ? Kind::writer : Kind::reader, p.name});
    if (p.role == Role::writer) continue;
    touching.insert(p.bias);
    if (centred) parts_.push_back({Kind::bias, p.bias});
  }
  for (const streams::Layout::Tied& t : plan_.tied)
    if (centred) parts_.push_back({Kind::reader, t.weight}), parts_.push_back({Kind::bias, t.bias});
  for (const auto& [name, tensor] : state_)
    if (const bool there = touching.contains(name); !there || !centred || unread.contains(name))
      parts_.push_back({there && is_floating(tensor.dtype()) ? Kind::stored : Kind::exact, name});
}

const streams::Place* Canonical::find(const std::string& name) const {
  for (const streams::Place& p : plan_.places)
    if (p.name == name) return &p;
  return nullptr;
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

Canonical::Rows Canonical::of_bias(const std::string& name, Rows rows, const std::string& norm, int64_t parts) const {
  rows.of_bias_ = true, rows.parts_ = parts, rows.count_ /= parts;
  if (const Tensor* t = state_.find(name)) {
    check(t->numel() == rows.count_, "canonical form: '", name, "' has shape ", t->shape(), ", its reader ",
          rows.count_, " rows");
    rows.bias_ = stored(name, -1).weight_;
  }
  if (const streams::NormPlace* n = plan_.find_norm(norm); n && !n->bias.empty())
    rows.beta_ = vector(n->bias), rows.factor_ = n->factor;
  return rows;
}

Canonical::Rows Canonical::rows(const Part& part) const {
  NoGrad no_grad;
  const streams::Place* place = find(part.name);
  const bool touches = place && place->role != Role::neutral;
  if (part.kind == Kind::stored) {
    const int last = state_.at(part.name).rank() - 1;
    return stored(part.name, touches ? place->dim : last == 0 ? -1 : last);
  }
  std::string norm;
  int64_t parts = 1;
  Rows rows;
  if (part.kind == Kind::writer) {
    rows = stored(part.name, place->dim);
    if (!place->scale.empty()) rows.factors_ = vector(place->scale);
    if (const streams::NormPlace* n = plan_.find_norm(place->norm)) {
      rows.eps_ = n->eps;
      if (!n->weight.empty()) rows.factors_ = vector(n->weight);
      if (!n->bias.empty()) rows.beta_ = vector(n->bias);
    }
  } else {
    const auto of = [&](const streams::Place& p) {
      return p.role == Role::reader && part.name == (part.kind == Kind::reader ? p.name : p.bias);
    };
    const auto tied = [&](const streams::Layout::Tied& t) {
      return part.name == (part.kind == Kind::reader ? t.weight : t.bias);
    };
    if (const auto t = std::ranges::find_if(plan_.tied, tied); t != plan_.tied.end())
      rows = stored(t->table, find(t->table)->dim), norm = t->norm;
    else if (const auto p = std::ranges::find_if(plan_.places, of); p != plan_.places.end())
      rows = stored(p->name, p->dim, p->parts), norm = p->norm, parts = p->parts;
    else
      check(false, "canonical form: there is no '", part.name, "'");
    if (part.kind == Kind::bias) return of_bias(part.name, std::move(rows), norm, parts);
    const streams::NormPlace* n = plan_.find_norm(norm);
    if (plan_.stored_width() == plan_.width && n && !n->weight.empty()) rows.factors_ = vector(n->weight);
  }
  if (plan_.rotation.defined()) {
    const Carried& f = rows.factors_;
    const Tensor x = f.value.empty() ? rows.weight_.values
                                     : rows.weight_.values * from_vector(f.value, {rows.weight_.values.size(1)});
    rows.rotated_ = contiguous(matmul(x, plan_.rotation)), rows.rotation_error_ = plan_.rotation_error;
  }
  // A tied table is expanded like a writer, since its head reads the raw table.
  const bool table = std::ranges::find(plan_.tied, part.name, &streams::Layout::Tied::weight) != plan_.tied.end();
  const Role role = part.kind == Kind::writer || table ? Role::writer : Role::reader;
  const streams::FormRow& form = row_of(plan_.form);
  rows.map_ = form.canonical(role, plan_.width);
  rows.rounded_with_sum_ = role == Role::writer && form.rounds_with_sum;
  return rows;
}

std::vector<std::string> Canonical::sources(const Part& part) const {
  std::vector<std::string> names = {part.name};
  const auto through = [&](const std::string& weight, const std::string& norm) {
    names.push_back(weight);
    if (const streams::NormPlace* n = plan_.find_norm(norm)) names.insert(names.end(), {n->weight, n->bias});
  };
  for (const streams::Place& p : plan_.places) {
    if (p.name == part.name) names.push_back(p.scale);
    if (p.role == Role::writer && p.name == part.name && !p.norm.empty()) through(p.name, p.norm);
    if (p.role == Role::reader && (p.name == part.name || p.bias == part.name)) through(p.name, p.norm);
  }
  for (const streams::Layout::Tied& t : plan_.tied)
    if (t.weight == part.name || t.bias == part.name) through(t.table, t.norm);
  return names;
}

}  // namespace isonorm::equivalence
