// Fused ops against the compositions that define them: values, and the gradients of every input for every subset of
// used outputs; in bf16 against the derivative of what was computed.
#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "tests/support/catch.h"
#include "tests/support/checks.h"
#include "tests/support/test_device.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

// The dtypes of rows and of parameters. Parameters may be f32 if rows are bf16.
struct Dtypes {
  DType rows, parameters;
};

struct Result {
  Tensors outputs;
  std::vector<Tensors> gradients;  // of one subset of outputs each
};

// Outputs, and for every subset (bit i: output i is used) the gradients of all floating inputs. Numbers are those that
// `values` hold, tensors of `computed`.
Result run(const std::function<Tensors(const Tensors&)>& f, const FusedCase& op, const FusedCase::Sample& s,
           Dtypes values, Dtypes computed) {
  Result r;
  size_t subsets = 2;
  for (size_t subset = 1; subset < subsets; ++subset) {
    Tensors x, leaves, used, cotangents;
    for (size_t i = 0; i < s.inputs.size(); ++i) {
      const bool parameter = i >= op.parameters;
      const Array a = quantise(s.inputs[i], parameter ? values.parameters : values.rows);
      x.push_back(place(a, parameter ? computed.parameters : computed.rows, Layout::contiguous));
    }
    for (const Tensor& t : x)
      if (is_floating(t.dtype())) leaves.push_back(require_grad(t));
    r.outputs = f(x);
    subsets = size_t{1} << r.outputs.size();
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      if (!(subset >> i & 1)) continue;
      used.push_back(r.outputs[i]);
      Array c(r.outputs[i].shape());
      for (int64_t k = 0; k < c.size(); ++k)
        c.v[k] = std::cos(static_cast<double>(7 * k + 3 * static_cast<int64_t>(i)));
      cotangents.push_back(place(quantise(c, values.rows), r.outputs[i].dtype(), Layout::contiguous));
    }
    r.gradients.push_back(grad(used, leaves, cotangents));
  }
  return r;
}

// Relative to a tensor's largest entry: `each` and, for the sums in it, `root` times the root of its size.
struct Bound {
  double each, root;
};

// Names the first entry at which a and b differ by more than `bound` times the larger of b's largest entry and `least`.
std::string compare(const Tensors& a, const Tensors& b, const Bound& bound, double least) {
  if (a.size() != b.size()) return text(a.size(), " tensors, expected ", b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    const std::vector<double> va = a[k].to_vector<double>(), vb = b[k].to_vector<double>();
    if (a[k].shape() != b[k].shape()) return text("tensor ", k, ": shape ", a[k].shape(), ", expected ", b[k].shape());
    double largest = least;
    for (double v : vb) largest = std::max(largest, std::abs(v));
    const double within = (bound.each + bound.root * std::sqrt(static_cast<double>(vb.size()))) * largest;
    for (size_t i = 0; i < va.size(); ++i)
      if (!(std::abs(va[i] - vb[i]) <= within))
        return text("tensor ", k, " at element ", i, " is ", va[i], ", expected ", vb[i], " within ", within);
  }
  return {};
}

std::string compare_gradients(const Result& a, const Result& b, const Bound& bound, double least) {
  for (size_t k = 0; k < a.gradients.size(); ++k) {
    const std::string complaint = compare(a.gradients[k], b.gradients[k], bound, least);
    if (!complaint.empty()) return text("gradients with outputs ", k + 1, " (bits): ", complaint);
  }
  return {};
}

// f64 numbers rounded to bf16 and back. The gradient passes unchanged.
Tensor as_bf16(const Tensor& x) {
  const Tensor exact = detach(x);
  return x + (exact.to(DType::bf16).to(DType::f64) - exact);
}

}  // namespace

TEST_CASE("fused ops agree with their compositions for every subset of outputs") {
  constexpr Dtypes f64{DType::f64, DType::f64};
  const Bound bound{0, 64 * epsilon(DType::f64)};
  for (const FusedCase& op : fused_cases()) {
    DYNAMIC_SECTION(op.name << ": fused") {
      int failures = 0;
      for (const FusedCase::Sample& s : op.samples) {
        const Result fused = run(s.fused, op, s, f64, f64), reference = run(s.reference, op, s, f64, f64);
        const double least = std::max(1.0, s.slope);
        std::string complaint = compare(fused.outputs, reference.outputs, bound, least);
        if (complaint.empty()) complaint = compare_gradients(fused, reference, bound, least);
        if (!complaint.empty() && ++failures <= 5)
          FAIL_CHECK(op.name << " " << shapes_of(s.inputs) << " " << s.label << ": " << complaint);
      }
      CHECK(failures == 0);
      CHECK(op.samples.size() >= 20);
    }
  }
}

// The reference is not the f64 function's gradient: if an op reads its rounded result again, forward and backward must
// read the same number. Backward rules round a handful of numbers for each gradient.
TEST_CASE("bf16 gradients of fused ops are the derivatives of the rounded function") {
  constexpr Dtypes f64{DType::f64, DType::f64}, bf16{DType::bf16, DType::bf16};
  const Bound bound{8 * epsilon(DType::bf16), 0};
  for (const FusedCase& op : fused_cases()) {
    DYNAMIC_SECTION(op.name << ": bf16") {
      int failures = 0;
      size_t number = 0;
      for (const FusedCase::Sample& s : op.samples) {
        if (test_device() != kCpu && number++ % 6 != 0) continue;  // an emulated kernel takes far longer
        const auto exact = [&](const Tensors& x) { return s.stored ? s.stored(x, as_bf16) : s.reference(x); };
        for (const DType parameters : {DType::bf16, DType::f32}) {
          if (parameters == DType::f32 && op.parameters >= s.inputs.size()) continue;
          const std::string complaint = compare_gradients(run(s.fused, op, s, bf16, {DType::bf16, parameters}),
                                                          run(exact, op, s, bf16, f64), bound, s.slope);
          if (!complaint.empty() && ++failures <= 5)
            FAIL_CHECK(op.name << " " << shapes_of(s.inputs) << " " << s.label << ", parameters " << name_of(parameters)
                               << ": " << complaint);
        }
      }
      CHECK(failures == 0);
    }
  }
}
