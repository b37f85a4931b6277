#include "equivalence/convert/canonical.h"

#include <cmath>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "streams/coordinates.h"
#include "streams/rotation.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Role;

// f(x) and, for what is never negative, |f| of it.
template <class F, class G> Carried mapped(const Carried& x, F&& f, G&& magnitude) {
  return {f(x.value), magnitude(x.rounding), magnitude(x.size), x.flip};
}

Carried centre(const Carried& x) {
  return mapped(
      x, [](const Tensor& t) { return streams::recentre(t, 1); },
      [](const Tensor& t) { return t + mean(t, {1}, true); });
}

// x^T Q. An entry of it is a row times a unit vector: it is off by at most the length of what the row is off by.
Carried rotated(const Carried& x, const Tensor& q, double error) {
  const auto length = [&](const Tensor& t) { return expand(norm(t, {1}, true), t.shape()); };
  return {streams::times(x.value, 1, q), length(x.rounding) + length(x.size) * error, length(x.size), x.flip};
}

Carried from_isometric(const Carried& x) {
  const Tensor q = abs(transpose(streams::helmert(x.value.size(1) + 1), 0, 1));
  return mapped(
      x, [](const Tensor& t) { return streams::from_isometric(t, 1); }, [&](const Tensor& t) { return matmul(t, q); });
}

// D v = (v, -sum v).
Carried expand_writer(const Carried& x) {
  return mapped(
      x, [](const Tensor& t) { return streams::expand_writer(t, 1); },
      [](const Tensor& t) {
        return cat({t, sum(t, {1}, true)}, 1);
      });
}

// D+^T b = (b - sum(b)/d, -sum(b)/d).
Carried expand_reader(const Carried& x) {
  return mapped(
      x, [](const Tensor& t) { return streams::expand_reader(t, 1); },
      [](const Tensor& t) {
        const Tensor share = sum(t, {1}, true) / static_cast<double>(t.size(1) + 1);
        return cat({t + share, share}, 1);
      });
}

// What two roundings move a product by: |x| e(y) + e(x) |y| + e(x) e(y).
Tensor rounding_of_product(const Carried& x, const Carried& y) {
  return x.size * y.rounding + x.rounding * (y.size + y.rounding);
}

Carried times(const Carried& x, const Carried& factors) {
  return {x.value * factors.value, rounding_of_product(x, factors), x.size * factors.size, x.flip};
}

// `partner`: the same tensor of a file in the same form, or null.
Carried as_stored(const Tensor& t, const Tensor* partner, int dim) {
  const Tensor rows = by_rows(t, dim), value = rows.to(DType::f64), rounding = half_ulp(rows);
  Carried x{value, rounding, abs(value), rows.size(1) == 0 ? Tensor() : amax(rounding, {1}, true) * 2.0};
  if (partner && partner->shape() == t.shape() && is_floating(partner->dtype()))
    x.rounding = masked_fill(rounding, eq(value, by_rows(detach(*partner), dim).to(DType::f64)), 0);
  return x;
}

}  // namespace

Tensor by_rows(const Tensor& x, int dim) {
  check(dim >= 0 && dim < x.rank(), "stream: a tensor of shape ", x.shape(), " has no dimension ", dim);
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != dim) order.push_back(i);
  order.push_back(dim);
  return reshape(permute(x, order), {x.size(dim) == 0 ? 0 : x.numel() / x.size(dim), x.size(dim)});
}

double smallest_step(DType dtype) {
  return dtype == DType::f64 ? 0x1p-1074 : dtype == DType::f32 ? 0x1p-149 : 0x1p-133;
}

Tensor half_ulp(const Tensor& x) {
  const int digits = x.dtype() == DType::f64 ? 53 : x.dtype() == DType::f32 ? 24 : 8;
  const int lowest = x.dtype() == DType::f64 ? -1021 : -125;  // exponent of the smallest normal number, as frexp has it
  const double twice = x.dtype() == DType::bf16 ? 1 + 0x1p-15 : 1;
  std::vector<double> values = x.to(DType::f64).to_vector<double>();
  for (double& v : values) {
    int exponent = lowest;
    if (v != 0) std::frexp(v, &exponent);
    // Half a step between subnormal numbers of f64 is none itself.
    v = std::isfinite(v) ? std::max(std::ldexp(twice, std::max(exponent, lowest) - digits - 1), 0x1p-1074) : NAN;
  }
  return from_span(std::span<const double>(values), x.shape());
}

Canonical::Canonical(const TensorMap& state, const streams::Placement& layout, bool centred, const TensorMap* partner)
    : state_(state), layout_(layout), partner_(partner) {
  std::set<std::string> touching;  // the stream: what is rounded, and not exact
  std::set<std::string> unread;    // gains and biases that are kept, and in no reader
  for (const streams::NormPlace& n : layout.norms) {
    touching.insert({n.weight, n.bias});
    const auto reads = [&](const auto& reader) { return reader.norm == n.name; };
    if (std::ranges::none_of(layout.places, reads) && std::ranges::none_of(layout.tied, reads))
      unread.insert({n.weight, n.bias});
  }
  for (const streams::Place& p : layout.places) {
    touching.insert(p.scale);
    if (p.role == Role::neutral) continue;
    touching.insert(p.name);
    if (centred && state.find(p.name)) parts_.push_back({p.role == Role::writer ? Kind::writer : Kind::reader, p.name});
    if (p.role == Role::writer) continue;
    touching.insert(p.bias);
    if (centred) parts_.push_back({Kind::bias, p.bias});
  }
  for (const streams::Layout::Tied& t : layout.tied)
    if (centred) parts_.push_back({Kind::reader, t.weight}), parts_.push_back({Kind::bias, t.bias});
  for (const auto& [name, tensor] : state)
    if (const bool there = touching.contains(name); !there || !centred || unread.contains(name))
      parts_.push_back({there && is_floating(tensor.dtype()) ? Kind::stored : Kind::exact, name});
}

const streams::Place* Canonical::find(const std::string& name) const {
  for (const streams::Place& p : layout_.places)
    if (p.name == name) return &p;
  return nullptr;
}

Carried Canonical::stored(const std::string& name, int dim) const {
  const Tensor& t = state_.at(name);
  return as_stored(detach(t), partner_ ? partner_->find(name) : nullptr, dim);
}

// A vector that is not along the stream: each entry is a slice of its own.
Carried Canonical::entrywise(const std::string& name) const {
  const auto column = [](const Tensor& t) { return reshape(detach(t), {t.numel(), 1}); };
  const Tensor* other = partner_ ? partner_->find(name) : nullptr;
  const Tensor there = other ? column(*other) : Tensor();
  return as_stored(column(state_.at(name)), other ? &there : nullptr, 1);
}

Carried Canonical::writer(const streams::Place& p) const {
  Carried x = stored(p.name, p.dim);
  if (!p.scale.empty()) x = times(x, stored(p.scale, 0));
  return layout_.form == Form::crms_norm ? expand_writer(x) : seen(x);
}

// Canonical coordinates of the forms in which readers move as writers do: all but crms_norm.
Carried Canonical::seen(const Carried& stored) const {
  const Carried x = layout_.rotation.defined() ? rotated(stored, layout_.rotation, layout_.rotation_error) : stored;
  if (layout_.form == Form::crms_isometric) return from_isometric(x);
  return layout_.form == Form::uncentred_rms_norm ? x : centre(x);
}

// `table`: a writer's rows, which a head reads as the raw table that they stand for.
Carried Canonical::reader(Carried x, const std::string& norm, bool table) const {
  if (layout_.form == Form::crms_norm) return table ? expand_writer(x) : expand_reader(x);
  if (const streams::NormPlace* n = layout_.find_norm(norm); n && !n->weight.empty())
    x = times(x, stored(n->weight, 0));
  return seen(x);
}

Carried Canonical::bias(const std::string& name, const Carried& weight, const std::string& norm) const {
  const int64_t out = weight.value.size(0);
  const Tensor none = zeros({out, 1}, {DType::f64});
  Carried b{none, none, none, none};
  if (const Tensor* t = state_.find(name)) {
    check(t->numel() == out, "canonical form: '", name, "' has shape ", t->shape(), ", its reader ", out, " rows");
    b = entrywise(name);
  }
  const streams::NormPlace* n = layout_.find_norm(norm);
  if (n && !n->bias.empty()) {
    const Carried beta = stored(n->bias, 0);
    const auto per_row = [](const Tensor& products) { return sum(products, {1}, true); };
    b = {b.value + per_row(weight.value * beta.value) * n->factor,
         b.rounding + per_row(rounding_of_product(weight, beta)) * n->factor,
         b.size + per_row(weight.size * beta.size) * n->factor, b.flip};
  }
  return b;
}

Carried Canonical::at(const Part& part) const {
  NoGrad no_grad;
  const streams::Place* place = find(part.name);
  const bool touches = place && place->role != Role::neutral;
  if (part.kind == Kind::stored && !touches && state_.at(part.name).rank() == 1) return entrywise(part.name);
  if (part.kind == Kind::stored) return stored(part.name, touches ? place->dim : state_.at(part.name).rank() - 1);
  if (part.kind == Kind::writer) return writer(*place);
  for (const streams::Layout::Tied& t : layout_.tied) {
    const streams::Place* table = find(t.table);
    if (part.name == t.weight) return reader(stored(t.table, table->dim), t.norm, true);
    if (part.name == t.bias) return bias(t.bias, stored(t.table, table->dim), t.norm);
  }
  if (part.kind == Kind::reader) return reader(stored(part.name, place->dim), place->norm, false);
  for (const streams::Place& p : layout_.places)
    if (p.role == Role::reader && p.bias == part.name) return bias(p.bias, stored(p.name, p.dim), p.norm);
  check(false, "canonical form: there is no '", part.name, "'");
  return {};
}

std::vector<std::string> Canonical::sources(const Part& part) const {
  std::vector<std::string> names = {part.name};
  const auto through = [&](const std::string& weight, const std::string& norm) {
    names.push_back(weight);
    if (const streams::NormPlace* n = layout_.find_norm(norm)) names.insert(names.end(), {n->weight, n->bias});
  };
  for (const streams::Place& p : layout_.places) {
    if (p.name == part.name) names.push_back(p.scale);
    if (p.role == Role::reader && (p.name == part.name || p.bias == part.name)) through(p.name, p.norm);
  }
  for (const streams::Layout::Tied& t : layout_.tied)
    if (t.weight == part.name || t.bias == part.name) through(t.table, t.norm);
  return names;
}

}  // namespace isonorm::equivalence
