#include "autograd/difference_probe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "core/view.h"

namespace isonorm::detail {
namespace {

std::vector<std::vector<double>> values_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> values;
  for (const Tensor& x : tensors) values.push_back(x.to_vector<double>());
  return values;
}

// Equal values; NaN equals NaN.
bool are_same(const std::vector<double>& a, const std::vector<double>& b) {
  const auto equal = [](double p, double q) { return p == q || (p != p && q != q); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

}  // namespace

bool is_f64(const Tensor& x, const char* what) {
  check(!is_floating(x.dtype()) || x.dtype() == DType::f64, "gradcheck: an ", what, " of shape ", x.shape(), " is ",
        x.dtype(), ", expected f64");
  return x.dtype() == DType::f64;
}

std::vector<double> draw_cotangent(size_t count, std::mt19937_64& random) {
  std::vector<double> c(count);
  for (double& v : c) v = (0.5 + static_cast<double>(random() >> 12) * 0x1p-52) * (random() & 1 ? 1 : -1);
  return c;
}

DifferenceProbe::DifferenceProbe(const TensorsFunction& f, const std::vector<Tensor>& inputs, uint64_t seed) : f_(f) {
  for (const Tensor& given : inputs) {
    const bool differentiable = is_f64(given, "input");
    x_.push_back(differentiable ? detached::clone(given) : detach(given));
    if (differentiable) leaves_.push_back(require_grad(x_.back()));
  }
  at_ = values_of(x_);
  record();
  check_inputs();
  std::mt19937_64 random(seed);
  for (size_t j = 0; j < outputs_.size(); ++j) {
    if (!is_f64(outputs_[j], "output")) continue;
    numbers_.push_back(static_cast<int>(j));
    values_.push_back(outputs_[j].to_vector<double>());
    c_.push_back(draw_cotangent(values_.back().size(), random));
  }
  const Values again = evaluate();
  check_inputs();
  check(std::equal(values_.begin(), values_.end(), again.begin(), again.end(), are_same),
        "gradcheck: the function gives other values for the same inputs; fix its random numbers");
}

bool DifferenceProbe::has_outputs() const {
  return std::any_of(values_.begin(), values_.end(), [](const auto& v) { return !v.empty(); });
}

DifferenceProbe::Values DifferenceProbe::gradients(std::optional<size_t> only) {
  if (outputs_.empty()) record();
  std::vector<Tensor> recorded, cotangents;
  for (size_t j = 0; j < numbers_.size(); ++j) {
    const Tensor& y = outputs_[static_cast<size_t>(numbers_[j])];
    if (!requires_grad(y) || j != only.value_or(j)) continue;
    recorded.push_back(y);
    cotangents.push_back(to(from_vector(c_[j], y.shape()), y.device()));
  }
  outputs_.clear();
  return values_of(grad(recorded, leaves_, cotangents));
}

double DifferenceProbe::Slope::total() const { return std::accumulate(of.begin(), of.end(), 0.0); }

DifferenceProbe::Slope DifferenceProbe::central(size_t input, int64_t i, double h) const {
  return slope(input, i, h, {{8.0 / 12, 1, 1}, {-1.0 / 12, 2, 2}});
}

std::pair<double, double> DifferenceProbe::one_sided(size_t input, int64_t i, double h) const {
  return {slope(input, i, h, {{1, 0, 1}}).total(), slope(input, i, h, {{1, 1, 0}}).total()};
}

DifferenceProbe::Slope DifferenceProbe::slope(size_t input, int64_t i, double h,
                                              std::initializer_list<Difference> differences) const {
  Slope s{std::vector<double>(c_.size())};
  const Tensor entry = as_strided(x_[input], {}, {}, i);
  const double at = at_[input][static_cast<size_t>(i)];
  for (const Difference& d : differences) {
    fill(entry, at + d.forth * h);
    const Values a = evaluate();
    fill(entry, at - d.back * h);
    const Values b = evaluate();
    double size = 0;
    for (size_t j = 0; j < c_.size(); ++j) {
      double sum = 0;
      for (size_t e = 0; e < c_[j].size(); ++e) {
        const double p = a[j][e], q = b[j][e];
        const bool finite = std::isfinite(values_[j][e]);
        // Differences first, so that outputs which do not change add no rounding error.
        if (p != q) sum += c_[j][e] * (p - q);
        if (std::isfinite(p) != finite || std::isfinite(q) != finite) s.outside = true, sum = NAN;
        if (finite) size += std::abs(c_[j][e]) * std::max(std::abs(p), std::abs(q));
      }
      s.of[j] += d.weight * sum / h;
    }
    s.size = std::max(s.size, size);
  }
  fill(entry, at);
  return s;
}

void DifferenceProbe::record() {
  const Recording recording;
  outputs_ = f_(x_);
}

DifferenceProbe::Values DifferenceProbe::evaluate() const {
  const NoGrad no_grad;
  std::vector<Tensor> outputs = f_(x_);
  std::erase_if(outputs, [](const Tensor& y) { return !is_f64(y, "output"); });
  return values_of(outputs);
}

// Throws if f has written to an input.
void DifferenceProbe::check_inputs() const {
  for (size_t k = 0; k < x_.size(); ++k)
    check(are_same(at_[k], x_[k].to_vector<double>()), "gradcheck: the function writes to input ", k,
          "; let it change a clone()");
}

}  // namespace isonorm::detail
