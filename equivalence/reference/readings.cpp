#include "equivalence/reference/readings.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/judge/pairs.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Role;

bool is_zero(const Tensor& x) { return largest_entry(x.to(DType::f64)) == 0; }

Tensor size_of(const Tensor& x) { return x.defined() ? abs(x) : x; }

// The other axes that have the stream's width.
std::vector<int> other_dims(const Tensor& weight, int dim) {
  std::vector<int> others;
  for (int d = 0; d < weight.rank(); ++d)
    if (d != dim && weight.size(d) == weight.size(dim) && !is_zero(weight)) others.push_back(d);
  return others;
}

// The output of a writer. rows: [in, stored width].
ExpectedOutput written(const Tensor& rows, const Tensor& bias, const Tensor& x) {
  if (!is_floating(x.dtype())) {
    const Tensor value = index_select(rows, 0, x).to(DType::f64);
    return {value, abs(value), 0, 2};  // rounded: the weight, the output
  }
  const Tensor w = transpose(rows.to(DType::f64), 0, 1);
  // Roundings: the weight, b, the output.
  return {linear(x, w, bias), linear(abs(x), abs(w), size_of(bias)), 1, 3, rows.size(0)};
}

}  // namespace

double ExpectedOutput::bound(DType dtype) const {
  const double of_sums = 2 * sums * std::sqrt(static_cast<double>(length));
  const auto off = [&](DType single, DType sum) {
    return (roundings * epsilon(single) + of_sums * epsilon(sum)) / 2;  // a rounding is half an epsilon
  };
  return off(dtype, dtype == DType::bf16 ? DType::f32 : dtype) + off(DType::f64, DType::f64);
}

Readings::Readings(const LazyState& file, const streams::Plan& plan) : file_(file), plan_(plan) {
  for (const streams::NormPlace& n : plan.norms)
    for (const std::string& name : {n.weight, n.bias})
      if (!name.empty()) norms_.add(name, file.read(name));
}

std::vector<Reading> Readings::of_reader(const TensorMap& state, const StreamReader& described,
                                         const streams::Place& place) const {
  std::vector<Reading> all;
  const Tensor absolute = abs(described.weight);
  const auto add = [&](const std::string& how, auto&& change) {
    StreamReader r = described;
    change(r);
    const Tensor size = &r.weight.impl() == &described.weight.impl() ? absolute : abs(r.weight);
    all.push_back({how, [this, r, size](const Tensor& x) { return read(r, size, x); }});
  };
  add("", [](StreamReader&) {});
  if (place.role == Role::reader)  // a tied head's axis follows from the table
    for (int dim : other_dims(state.at(place.name), place.dim))
      add(text("with dim ", dim), [&](StreamReader& r) { r.weight = by_rows(widened(state, place.name), dim); });
  for (const streams::NormPlace& n : plan_.norms)
    if (!same_norm(n, norm_of(plan_, described)) && !is_zero(described.weight))
      add(text("through norm '", n.name, "'"), [&](StreamReader& r) { r.norm = n.name; });
  for (const Bias& b : other_biases(described.name, described.bias, described.weight.size(0)))
    add(b.how, [&](StreamReader& r) { r.bias = b.bias; });
  return all;
}

std::vector<Reading> Readings::of_writer(const TensorMap& state, const streams::Place& p, bool ids) const {
  const Tensor& weight = state.at(p.name);
  std::vector<Reading> all;
  const auto add = [&](const std::string& how, int dim, const Tensor& bias, const std::string& norm) {
    all.push_back({how, [this, norm, rows = by_rows(weight, dim), bias](const Tensor& x) {
                     return norm.empty() ? written(rows, bias, x) : behind(norm, index_select(rows, 0, x));
                   }});
  };
  Tensor bias;
  if (const std::string name = bias_of_writer(plan_, p); !ids && !name.empty())
    bias = flatten(file_.read(name).to(DType::f64));
  check(p.norm.empty() || ids, "reference: '", p.name, "' is called a table whose rows go through norm '", p.norm,
        "', and '", p.name, ".input' holds no ids");
  add("", p.dim, bias, p.norm);
  for (int dim : other_dims(weight, p.dim)) add(text("with dim ", dim), dim, bias, p.norm);
  if (!p.norm.empty()) {
    add("without its norm", p.dim, bias, "");
    for (const streams::NormPlace& n : plan_.norms)
      if (!same_norm(n, *plan_.find_norm(p.norm))) add(text("through norm '", n.name, "'"), p.dim, bias, n.name);
  }
  if (ids) return all;
  for (const Bias& b : other_biases(p.name, bias, weight.size(p.dim))) add(b.how, p.dim, b.bias, "");
  return all;
}

std::vector<Readings::Bias> Readings::other_biases(const std::string& weight, const Tensor& bias,
                                                   int64_t length) const {
  std::vector<Bias> others;
  if (bias.defined()) {
    if (!is_zero(bias)) others.push_back({"without its bias", {}});
    return others;
  }
  const std::string name = streams::bias_beside(weight);
  const Tensor* there = file_.outline.find(name);
  if (!there || there->numel() != length || !is_floating(there->dtype())) return others;
  const Tensor undeclared = flatten(file_.read(name).to(DType::f64));
  if (!is_zero(undeclared)) others.push_back({text("with the bias '", name, "'"), undeclared});
  return others;
}

Tensor Readings::gain_or_bias(const std::string& name, double otherwise) const {
  return name.empty() ? full({plan_.stored_width()}, otherwise, {DType::f64}) : flatten(widened(norms_, name));
}

bool Readings::same_norm(const streams::NormPlace& a, const streams::NormPlace& b) const {
  return a.factor == b.factor && a.normalizes == b.normalizes &&
         is_zero(gain_or_bias(a.weight, 1) - gain_or_bias(b.weight, 1)) &&
         is_zero(gain_or_bias(a.bias, 0) - gain_or_bias(b.bias, 0));
}

// The sum of the absolute terms of a normalised row, including gain and bias. LayerNorm subtracts a mean, which has the
// rounding errors of the row's entries.
Tensor Readings::normalised_size(const streams::NormPlace& norm, const Tensor& x) const {
  Tensor size;
  if (row_of(plan_.form).norm == NormKind::layer)
    size = (abs(x) + mean(abs(x), {1}, true)) / sqrt(mean(square(x - mean(x, {1}, true)), {1}, true) + norm.eps);
  else
    size = abs(normalised(norms_, plan_, {.name = norm.name, .eps = norm.eps}, x));
  return size * abs(gain_or_bias(norm.weight, 1)) + abs(gain_or_bias(norm.bias, 0));
}

// Puts rows [n, width] of a table through a norm.
ExpectedOutput Readings::behind(const std::string& norm, const Tensor& rows) const {
  const Tensor x = rows.to(DType::f64);
  const streams::NormPlace& n = *plan_.find_norm(norm);
  // Sums: mean, variance. Roundings: x - mean, the root, their product, gain, bias, the output.
  return {normalised(norms_, plan_, n, x), normalised_size(n, x), 2, 6, x.size(1)};
}

ExpectedOutput Readings::read(const StreamReader& r, const Tensor& absolute_weight, const Tensor& x) const {
  const Tensor size = cat(std::vector<Tensor>(static_cast<size_t>(r.parts), normalised_size(norm_of(plan_, r), x)), 1);
  // Sums: mean, variance, product. Roundings: x - mean, the root, their product, gain, bias, the weight, b, the output.
  return {seen(norms_, plan_, r, x), linear(size, absolute_weight, size_of(r.bias)), 3, 8, size.size(1)};
}

std::string bias_of_writer(const streams::Plan& plan, const streams::Place& writer) {
  const std::string bias = streams::bias_beside(writer.name);
  for (const streams::Place& q : plan.places)
    if (q.name == bias && q.role == Role::writer) return bias;
  return {};
}

}  // namespace isonorm::equivalence
