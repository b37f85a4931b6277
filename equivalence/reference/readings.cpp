#include "equivalence/reference/readings.h"

#include <cmath>

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/convert/state.h"
#include "equivalence/judge/pairs.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Plan;

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
  for (const Plan::Norm& n : plan.norms)
    for (const std::string& name : {n.weight, n.bias})
      if (!name.empty()) norms_.add(name, file.read(name));
}

std::vector<Reading> Readings::of_reader(const TensorMap& state, const Plan::Reader& r) const {
  std::vector<Reading> all;
  const ReaderWeights described = weights_of(state, plan_, r);
  const auto add = [&](const std::string& how, int norm, const ReaderWeights& weights) {
    all.push_back(
        {how, [this, norm, parts = r.parts, weights](const Tensor& x) { return read(norm, parts, weights, x); }});
  };
  add("", r.norm, described);
  if (!r.tied())  // a tied head's axis follows from the table
    for (int dim : other_dims(state.at(r.name), r.dim))
      add(text("with dim ", dim), r.norm, {by_rows(widened(state, r.name), dim), described.bias});
  for (size_t i = 0; i < plan_.norms.size(); ++i)
    if (const int norm = static_cast<int>(i); !same_norm(norm, r.norm) && !is_zero(described.weight))
      add(text("through norm '", plan_.norms[i].name, "'"), norm, described);
  for (const Bias& b : other_biases(r.name, described.bias, described.weight.size(0)))
    add(b.how, r.norm, {described.weight, b.bias});
  return all;
}

std::vector<Reading> Readings::of_writer(const TensorMap& state, const Plan::Writer& w, bool ids) const {
  const Tensor& weight = state.at(w.name);
  std::vector<Reading> all;
  const auto add = [&](const std::string& how, int dim, const Tensor& bias, int norm) {
    all.push_back({how, [this, norm, rows = by_rows(weight, dim), bias](const Tensor& x) {
                     return norm < 0 ? written(rows, bias, x) : behind(norm, index_select(rows, 0, x));
                   }});
  };
  Tensor bias;
  if (const std::string name = bias_of_writer(plan_, w); !ids && !name.empty())
    bias = flatten(file_.read(name).to(DType::f64));
  check(w.norm < 0 || ids, "reference: '", w.name, "' is called a table whose rows go through norm '",
        w.norm < 0 ? "" : plan_.norms[w.norm].name, "', and '", w.name, ".input' holds no ids");
  add("", w.dim, bias, w.norm);
  for (int dim : other_dims(weight, w.dim)) add(text("with dim ", dim), dim, bias, w.norm);
  if (w.norm >= 0) {
    add("without its norm", w.dim, bias, -1);
    for (size_t i = 0; i < plan_.norms.size(); ++i)
      if (const int norm = static_cast<int>(i); !same_norm(norm, w.norm))
        add(text("through norm '", plan_.norms[i].name, "'"), w.dim, bias, norm);
  }
  if (ids) return all;
  for (const Bias& b : other_biases(w.name, bias, weight.size(w.dim))) add(b.how, w.dim, b.bias, -1);
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

bool Readings::same_norm(int i, int k) const {
  const Plan::Norm &a = plan_.norms[i], &b = plan_.norms[k];
  return a.factor == b.factor && a.normalizes == b.normalizes &&
         is_zero(gain_or_bias(a.weight, 1) - gain_or_bias(b.weight, 1)) &&
         is_zero(gain_or_bias(a.bias, 0) - gain_or_bias(b.bias, 0));
}

// The sum of the absolute terms of a normalized row, including gain and bias. LayerNorm subtracts a mean, which has the
// rounding errors of the row's entries.
Tensor Readings::normalised_size(const Plan::Norm& norm, const Tensor& x) const {
  Tensor size;
  if (row_of(plan_.form).norm == NormKind::layer)
    size = (abs(x) + mean(abs(x), {1}, true)) / sqrt(mean(square(x - mean(x, {1}, true)), {1}, true) + norm.eps);
  else
    size = abs(normalised(norms_, plan_, {.name = norm.name, .eps = norm.eps}, x));
  return size * abs(gain_or_bias(norm.weight, 1)) + abs(gain_or_bias(norm.bias, 0));
}

// Puts rows [n, width] of a table through a norm.
ExpectedOutput Readings::behind(int norm, const Tensor& rows) const {
  const Tensor x = rows.to(DType::f64);
  const Plan::Norm& n = plan_.norms[norm];
  // Sums: mean, variance. Roundings: x - mean, the root, their product, gain, bias, the output.
  return {normalised(norms_, plan_, n, x), normalised_size(n, x), 2, 6, x.size(1)};
}

ExpectedOutput Readings::read(int norm, int64_t parts, const ReaderWeights& weights, const Tensor& x) const {
  const Plan::Norm& n = plan_.norms[norm];
  const Tensor size = cat(std::vector<Tensor>(static_cast<size_t>(parts), normalised_size(n, x)), 1);
  // Sums: mean, variance, product. Roundings: x - mean, the root, their product, gain, bias, the weight, b, the output.
  return {linear(normalised(norms_, plan_, n, x, parts), weights.weight, weights.bias),
          linear(size, abs(weights.weight), size_of(weights.bias)), 3, 8, size.size(1)};
}

std::string bias_of_writer(const Plan& plan, const Plan::Writer& writer) {
  const std::string bias = streams::bias_beside(writer.name);
  return plan.writer(bias) ? bias : "";
}

}  // namespace isonorm::equivalence
