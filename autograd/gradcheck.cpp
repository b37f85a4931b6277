#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "core/view.h"

namespace isonorm {
namespace {

using Values = std::vector<std::vector<double>>;

bool is_f64(const Tensor& x, const char* what) {
  check(!is_floating(x.dtype()) || x.dtype() == DType::f64, "gradcheck: an ", what, " of shape ", x.shape(), " is ",
        x.dtype(), ", expected f64");
  return x.dtype() == DType::f64;
}

// Values of the f64 outputs.
Values evaluate(const TensorsFunction& f, const std::vector<Tensor>& inputs) {
  NoGrad no_grad;
  Values values;
  for (const Tensor& y : f(inputs))
    if (is_f64(y, "output")) values.push_back(y.to_vector<double>());
  return values;
}

// Bitwise but for the sign of zero; NaN equals NaN.
bool same(const Values& a, const Values& b) {
  const auto equal = [](double p, double q) { return p == q || (p != p && q != q); };
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (!std::equal(a[k].begin(), a[k].end(), b[k].begin(), b[k].end(), equal)) return false;
  return true;
}

// NaN is the worst error of all.
double rank_of(double error) { return std::isnan(error) ? HUGE_VAL : error; }

// Sum of c (a - b): differences first, so that outputs which do not change add no rounding error.
double contract(const Values& c, const Values& a, const Values& b) {
  double sum = 0;
  for (size_t k = 0; k < c.size(); ++k)
    for (size_t i = 0; i < c[k].size(); ++i) sum += c[k][i] * (a[k][i] - b[k][i]);
  return sum;
}

double deviation(const double* x, int64_t n) {
  double mean = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return std::sqrt(sum / static_cast<double>(n));
}

// A power of two near `step` times the spread around entry i: adding it to x rounds as little as possible.
double step_at(const std::vector<double>& x, int64_t i, int64_t row, double step) {
  double spread = deviation(x.data() + i / row * row, row);
  if (!(spread > 0)) spread = deviation(x.data(), static_cast<int64_t>(x.size()));
  if (!(spread > 0)) spread = x[i] == 0 ? 1 : std::min(1.0, std::abs(x[i]));
  return std::exp2(std::round(std::log2(step * spread)));
}

Dims index_of(int64_t i, const Dims& shape) {
  Dims index = shape;
  for (int d = shape.rank - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

// Gradients of <c, f(leaves)>; zeros where f does not depend on a leaf.
std::vector<Tensor> analytic_gradients(const std::vector<Tensor>& outputs, const Values& c,
                                       const std::vector<Tensor>& leaves) {
  std::vector<Tensor> recorded, cotangents;
  size_t k = 0;
  for (const Tensor& y : outputs) {
    if (y.dtype() != DType::f64) continue;
    const std::vector<double>& ck = c[k++];
    if (!requires_grad(y)) continue;
    recorded.push_back(y);
    cotangents.push_back(to(from_vector(ck, y.shape()), y.device()));
  }
  return grad(recorded, leaves, cotangents);
}

}  // namespace

std::string GradcheckResult::message() const {
  return text("gradcheck: input ", input, " at ", index, ": analytic ", analytic, ", numeric ", numeric,
              ", relative error ", error, " (", entries, " entries compared)");
}

GradcheckResult gradcheck(const TensorsFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  std::vector<Tensor> x, leaves;
  for (const Tensor& given : inputs) {
    if (!is_f64(given, "input")) {
      x.push_back(detach(given));
      continue;
    }
    x.push_back(detached::clone(given));
    leaves.push_back(require_grad(x.back()));
  }

  const std::vector<Tensor> outputs = f(x);
  Values values, c;
  std::mt19937_64 random(o.seed);
  for (const Tensor& y : outputs) {
    if (!is_f64(y, "output")) continue;
    values.push_back(y.to_vector<double>());
    std::vector<double>& ck = c.emplace_back(values.back().size());
    for (double& v : ck) v = (0.5 + static_cast<double>(random() >> 12) * 0x1p-52) * (random() & 1 ? 1 : -1);
  }
  check(same(values, evaluate(f, x)),
        "gradcheck: the function gives other values for the same inputs; fix its random numbers");
  const std::vector<Tensor> gradients = analytic_gradients(outputs, c, leaves);

  GradcheckResult result;
  size_t leaf = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (x[k].dtype() != DType::f64) continue;
    const std::vector<double> analytic = gradients[leaf++].to_vector<double>(), at = x[k].to_vector<double>();
    const int64_t row = x[k].rank() ? std::max<int64_t>(1, x[k].size(-1)) : 1;
    std::vector<double> numeric(at.size());
    double largest = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const double h = step_at(at, static_cast<int64_t>(i), row, o.step);
      const Tensor entry = as_strided(x[k], {}, {}, static_cast<int64_t>(i));
      const auto shifted = [&](double by) {
        fill(entry, at[i] + by);
        return evaluate(f, x);
      };
      const double near = contract(c, shifted(h), shifted(-h)), far = contract(c, shifted(2 * h), shifted(-2 * h));
      fill(entry, at[i]);
      numeric[i] = (8 * near - far) / (12 * h);
      largest = std::max({largest, std::abs(analytic[i]), std::abs(numeric[i])});
    }
    const bool zero = largest <= o.absolute;
    for (size_t i = 0; i < at.size(); ++i) {
      ++result.entries;
      const double error = std::abs(analytic[i] - numeric[i]) / (zero ? 1 : largest);
      result.ok &= error <= (zero ? o.absolute : o.tolerance);  // false for NaN
      if (result.input >= 0 && !(rank_of(error) > rank_of(result.error))) continue;
      result.input = static_cast<int>(k);
      result.index = index_of(static_cast<int64_t>(i), x[k].shape());
      result.analytic = analytic[i];
      result.numeric = numeric[i];
      result.error = error;
    }
  }
  return result;
}

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  return gradcheck([&f](const std::vector<Tensor>& x) { return std::vector<Tensor>{f(x)}; }, inputs, o);
}

}  // namespace isonorm
