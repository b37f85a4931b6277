#include "tests/support/checks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <random>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/create.h"
#include "core/system/parallel.h"
#include "tests/support/test_device.h"

namespace isonorm::test {
namespace {

double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v)
    if (std::isfinite(x)) m = std::max(m, std::abs(x));
  return m;
}

double smallest_normal(DType d) { return d == DType::f64 ? 0x1p-1022 : 0x1p-126; }

bool is_stretched(Layout l) { return l == Layout::stretched || l == Layout::stretched_outer; }

Arrays prepare(Arrays inputs, DType dtype, Layout layout) {
  for (Array& a : inputs) a = quantise(is_stretched(layout) ? uniform_rows(std::move(a), layout) : std::move(a), dtype);
  return inputs;
}

Tensors place_all(const Arrays& arrays, DType dtype, Layout layout) {
  Tensors tensors;
  for (const Array& a : arrays) tensors.push_back(place(a, dtype, layout));
  return tensors;
}

void require_gradients(const Tensors& tensors) {
  for (const Tensor& t : tensors)
    if (is_floating(t.dtype())) require_grad(t);
}

// Plus or minus 33/64 to 96/64: exact in bf16 and never small.
Arrays cotangents_of(const Tensors& outputs, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  Arrays c;
  for (const Tensor& y : outputs)
    c.push_back(tabulate(y.shape(), [&](const Dims&) {
      return (33 + static_cast<double>(random() % 64)) / 64 * (random() & 1 ? 1 : -1);
    }));
  return c;
}

struct Pass {
  Tensors outputs, gradients;
  std::string complaint;
};

struct How {
  Layout cotangents = Layout::contiguous;  // a layout whose cotangents other layouts can have as well
  int passes = 1;                          // passes through one graph; the gradients of the last one count
  bool create_graph = false;
  unsigned seed = 1;                     // for random cotangents
  std::optional<double> cotangent = {};  // the value of every cotangent; empty: random values
};

// Forward and backward with inputs and cotangents in the given layout.
Pass run_both(const Sample& s, const Arrays& arrays, DType dtype, Layout layout, How how = {}) {
  const Tensors x = place_all(arrays, dtype, layout);
  require_gradients(x);
  Tensors leaves, recorded, c;
  for (const Tensor& t : x)
    if (is_floating(t.dtype())) leaves.push_back(t);
  Pass p;
  p.outputs = s.run(x);
  for (const Tensor& y : p.outputs)
    if (is_floating(y.dtype()) && requires_grad(y)) recorded.push_back(y);
  Arrays ca = cotangents_of(recorded, how.seed);
  for (Array& a : ca)
    if (how.cotangent) std::fill(a.v.begin(), a.v.end(), *how.cotangent);
  for (size_t i = 0; i < recorded.size(); ++i)
    c.push_back(
        place(is_stretched(how.cotangents) ? uniform_rows(ca[i], how.cotangents) : ca[i], recorded[i].dtype(), layout));
  const auto before_x = bytes_of(x), before_c = bytes_of(c);
  for (int pass = 1; pass <= how.passes && !recorded.empty(); ++pass)
    p.gradients = grad(recorded, leaves, c, {.retain_graph = pass < how.passes, .create_graph = how.create_graph});
  if (bytes_of(x) != before_x) p.complaint = "backward wrote to an input";
  if (bytes_of(c) != before_c) p.complaint = "backward wrote to a cotangent";
  return p;
}

// Describes the worst entry of a that differs from b by more than `bound` times the larger of b's largest entry and
// `slope`. Empty if there is none.
std::string compare_gradients(const Tensors& a, const Tensors& b, double bound, double slope) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].shape() != b[k].shape())
      return text("gradient ", k, " has shape ", a[k].shape(), ", expected ", b[k].shape());
    const std::vector<double> va = a[k].to_vector<double>(), vb = b[k].to_vector<double>();
    const double scale = std::max({largest(vb), slope, smallest_normal(DType::f32)});
    for (size_t i = 0; i < va.size(); ++i)
      if (!(std::abs(va[i] - vb[i]) <= bound * scale))
        return text("gradient ", k, " of shape ", a[k].shape(), " at element ", i, " is ", va[i], ", expected ", vb[i],
                    " within ", bound * scale);
  }
  return {};
}

}  // namespace

std::string Sample::name() const { return shapes_of(inputs) + (label.empty() ? "" : " " + label); }

std::string difference(const Tensor& y, const Array& expected, DType dtype, Tolerance t, double length,
                       const Arrays& inputs) {
  if (y.shape() != expected.shape) return text("shape ", y.shape(), ", expected ", expected.shape);
  if (y.dtype() != dtype_for(expected, dtype))
    return text("dtype ", y.dtype(), ", expected ", dtype_for(expected, dtype));
  const std::vector<double> v = y.to_vector<double>();
  const bool floating = is_floating(y.dtype());
  const double eps = !floating ? 0 : t.once ? epsilon(acc_dtype(dtype)) : std::max(epsilon(y.dtype()), epsilon(dtype));
  const double store = t.once && y.dtype() == DType::bf16 ? epsilon(DType::bf16) / 2 : 0;
  const double weights = t.weights && y.dtype() == DType::bf16 ? epsilon(DType::bf16) / 2 : 0;
  double terms = 0;
  for (const Array& a : inputs)
    if (a.kind == Kind::real) terms = std::max(terms, largest(a.v));
  const double whole = largest(expected.v);
  for (size_t i = 0; i < v.size(); ++i) {
    const double e = expected.v[i];
    const Array rounded = quantise(tabulate({}, [&](const Dims&) { return e; }), y.dtype());
    if (std::isnan(e) ? std::isnan(v[i]) : v[i] == (floating ? rounded.v[0] : e)) continue;
    const double scale = t.scale == Scale::entry    ? std::abs(e)
                         : t.scale == Scale::unit   ? 1 + std::abs(e)
                         : t.scale == Scale::output ? whole
                                                    : std::max(terms, whole);
    const double near =
        t.constant * eps * std::sqrt(std::max(1.0, length)) * scale + store * std::abs(e) + weights * scale;
    const double bound = std::isinf(e) ? 0 : near;
    if (std::abs(v[i] - e) <= (bound > 0 ? bound + smallest_normal(y.dtype()) : 0)) continue;
    return text("element ", i, " of ", y.shape(), " is ", v[i], ", expected ", e, " within ", bound);
  }
  return {};
}

std::string check_values(const OpCase& op, const Sample& s, DType dtype, Layout layout) {
  const Arrays arrays = prepare(s.inputs, dtype, layout);
  const Arrays expected = s.reference ? s.reference(arrays) : Arrays();
  const Tensors x = place_all(arrays, dtype, layout);
  const auto before = bytes_of(x);

  Tensors plain;
  {
    NoGrad no_grad;
    plain = s.run(x);
  }
  if (s.verify) {
    const std::string complaint = s.verify(plain);
    if (!complaint.empty()) return complaint;
  }
  if (s.reference && plain.size() != expected.size()) return text(plain.size(), " outputs, expected ", expected.size());
  for (const Tensor& y : plain)
    if (y.device() != test_device()) return text("an output lies on ", y.device());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string d =
        difference(plain[i], expected[i], dtype, s.tolerance.value_or(op.tolerance), s.length, arrays);
    if (!d.empty()) return text("output ", i, ": ", d);
  }
  for (const Tensor& y : plain)
    if (requires_grad(y)) return "NoGrad: an output carries a graph";

  const auto bits = elements_of(plain);
  require_gradients(x);
  const Tensors recorded = s.run(x);
  if (s.recorded_bits && elements_of(recorded) != bits) return "values differ between recording and NoGrad";
  bool tracked = false;
  for (const Tensor& y : recorded) tracked |= requires_grad(y);
  const bool floating = std::any_of(x.begin(), x.end(), [](const Tensor& t) { return is_floating(t.dtype()); });
  if (s.gradient && floating && tracked != op.differentiable)
    return tracked ? "an output takes a gradient, the row says that none does" : "no output takes a gradient";
  if (bytes_of(x) != before) return "forward wrote to an input";
  return {};
}

namespace {
// A single sample may have gradients that are all zero; a row may not, unless it says so.
std::string complaint_of(const GradcheckResult& r, bool& measured) {
  measured |= r.status != GradcheckStatus::nothing;
  return r.ok || r.status == GradcheckStatus::nothing ? std::string() : r.message();
}
}  // namespace

std::string check_gradient(const OpCase& op, const Sample& s, bool& measured) {
  const Tensors x = place_all(s.inputs, DType::f64, Layout::contiguous);
  return complaint_of(gradcheck(s.run, x, {.absolute = s.absolute, .zero = op.zero}), measured);
}

namespace {
bool is_refusal(const Error& e) {
  const std::string line = e.what();
  return line.find(": it has no second derivative") != std::string::npos && line.find('\n') == std::string::npos;
}

bool is_refused(const Sample& s) {
  Tensors x = place_all(s.inputs, DType::f64, Layout::contiguous), leaves, recorded;
  require_gradients(x);
  std::ranges::copy_if(x, std::back_inserter(leaves), [](const Tensor& t) { return requires_grad(t); });
  std::ranges::copy_if(s.run(x), std::back_inserter(recorded), [](const Tensor& t) { return requires_grad(t); });
  Tensors cotangents;
  for (const Tensor& y : recorded) cotangents.push_back(ones_like(y));
  try {
    grad(recorded, leaves, cotangents, {.create_graph = true});
  } catch (const Error& e) {
    if (!is_refusal(e)) throw;
    return true;
  }
  return false;
}
}  // namespace

std::string check_second_gradient(const OpCase& op, const Sample& s, bool& measured) {
  const bool any = std::any_of(s.inputs.begin(), s.inputs.end(),
                               [](const Array& x) { return x.kind == Kind::real && x.size() > 0; });
  if (!any) return {};  // the input has no entries: by the mean's definition 0 / 0
  // The error of finite differences grows with the derivatives of the function, and here the function is a derivative
  // already.
  const Tensors x = place_all(s.inputs, DType::f64, Layout::contiguous);
  return complaint_of(gradgradcheck(s.run, x, {.tolerance = 1e-6, .absolute = s.absolute, .zero = op.zero}), measured);
}

std::string check_recorded_gradient(const Sample& s, DType dtype) {
  const Arrays arrays = prepare(s.inputs, dtype, Layout::contiguous);
  if (std::none_of(arrays.begin(), arrays.end(), [](const Array& x) { return x.kind == Kind::real; })) return {};
  const Pass plain = run_both(s, arrays, dtype, Layout::contiguous);
  Pass recorded;
  try {
    recorded = run_both(s, arrays, dtype, Layout::contiguous, {.create_graph = true});
  } catch (const Error& e) {
    if (!is_refusal(e)) throw;
    return {};
  }
  // In compositions a slope may be a difference of numbers near 1, as in gelu's tail; in the kernel it is not.
  return compare_gradients(recorded.gradients, plain.gradients,
                           kGradientConstant * epsilon(dtype) * std::sqrt(std::max(1.0, s.length)),
                           std::max(s.slope, 1.0));
}

bool has_second_gradient(const OpCase& op) {
  return op.differentiable && std::none_of(op.samples.begin(), op.samples.end(),
                                           [](const Sample& s) { return s.gradient && !s.large && is_refused(s); });
}

std::string check_gradient_layout(const Sample& s, Layout layout) {
  const Arrays arrays = prepare(s.inputs, DType::f64, layout);
  const Pass strided = run_both(s, arrays, DType::f64, layout, {.cotangents = layout});
  if (!strided.complaint.empty()) return strided.complaint;
  const Pass plain = run_both(s, arrays, DType::f64, Layout::contiguous, {.cotangents = layout});
  return compare_gradients(strided.gradients, plain.gradients,
                           kLayoutConstant * epsilon(DType::f64) * std::sqrt(std::max(1.0, s.length)), s.slope);
}

std::string check_closed(const Sample& s) {
  const Arrays arrays = prepare(s.inputs, DType::f64, Layout::contiguous);
  const auto gradients = [&](How how) {
    std::vector<std::vector<double>> all;
    for (const Tensor& g : run_both(s, arrays, DType::f64, Layout::contiguous, how).gradients)
      all.push_back(g.to_vector<double>());
    return all;
  };
  const auto one = gradients({}), other = gradients({.seed = 2});
  for (const bool recorded : {false, true})
    for (const double cotangent : {HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN)}) {
      if (recorded && is_refused(s)) continue;
      const auto found = gradients({.create_graph = recorded, .cotangent = cotangent});
      for (size_t k = 0; k < one.size(); ++k)
        for (size_t i = 0; i < one[k].size(); ++i)
          if (one[k][i] == 0 && other[k][i] == 0 && found[k][i] != 0)
            return text("gradient ", k, " at element ", i, " is ", found[k][i], " under cotangents of ", cotangent,
                        recorded ? ", recorded" : "", ", 0 under others");
    }
  return {};
}

std::string check_gradient_dtype(const Sample& s, DType dtype) {
  const Arrays arrays = prepare(s.inputs, dtype, Layout::contiguous);
  const Pass low = run_both(s, arrays, dtype, Layout::contiguous);
  const Pass high = run_both(s, arrays, DType::f64, Layout::contiguous);
  return compare_gradients(low.gradients, high.gradients,
                           kGradientConstant * epsilon(dtype) * std::sqrt(std::max(1.0, s.length)), s.slope);
}

std::string check_bits(const Sample& s, DType dtype) {
  const Arrays arrays = prepare(s.inputs, dtype, Layout::contiguous);
  struct Restore {
    int threads = num_threads();
    ~Restore() { set_num_threads(threads); }
  } restore;
  const auto bits = [&](int passes = 1) {
    const Pass p = run_both(s, arrays, dtype, Layout::contiguous, {.passes = passes});
    auto all = elements_of(p.outputs);
    for (auto& g : elements_of(p.gradients)) all.push_back(std::move(g));
    return all;
  };
  const auto first = bits();
  if (bits() != first) return "two runs differ";
  if (bits(2) != first) return "a second pass through a retained graph differs";
  if (!s.large) return {};
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    if (bits() != first)
      return text("the bits depend on the number of threads: ", threads, " against ", restore.threads);
  }
  return {};
}

std::string check_mixture(const OpCase& op, const Sample& s) {
  const Arrays arrays = prepare(s.inputs, op.dtypes.front(), Layout::contiguous);
  for (size_t other = 0; arrays.size() > 1 && other < arrays.size(); ++other) {
    Tensors x;
    for (size_t i = 0; i < arrays.size(); ++i)
      x.push_back(place(arrays[i], op.dtypes.front(), Layout::contiguous, i == other ? kCpu : test_device()));
    const std::string complaint = check_refusal(op, {[&] { s.run(x); }, {text(kCpu), " and ", text(test_device())}});
    if (!complaint.empty()) return text("input ", other, " on the CPU: ", complaint);
  }
  return {};
}

std::string check_refusal(const OpCase& op, const BadCall& bad) {
  std::string message;
  try {
    bad.call();
    return "nothing was thrown, expected words '" + (bad.words.empty() ? "" : bad.words[0]) + "'";
  } catch (const Error& e) {
    message = e.what();
  }
  if (message.find('\n') != std::string::npos) return "the message has several lines: " + message;
  if (!message.starts_with(op.name + ": ")) return "the message does not begin with the op: " + message;
  for (const std::string& word : bad.words)
    if (message.find(word) == std::string::npos) return "'" + word + "' is missing in: " + message;
  return {};
}

}  // namespace isonorm::test
