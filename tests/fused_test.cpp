// Fused ops against the compositions that define them: values, and the gradients of every input for every subset of
// used outputs.
#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "tests/support/catch.h"
#include "tests/support/checks.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

struct Result {
  Tensors outputs;
  std::vector<Tensors> gradients;  // of one subset of outputs each
};

// Outputs, and for every subset (bit i: output i is used) the gradients of all floating inputs.
Result run(const std::function<Tensors(const Tensors&)>& f, const FusedCase::Sample& s) {
  Result r;
  size_t subsets = 2;
  for (size_t subset = 1; subset < subsets; ++subset) {
    Tensors x, leaves, used, cotangents;
    for (const Array& a : s.inputs) x.push_back(place(a, DType::f64, Layout::contiguous));
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
      cotangents.push_back(place(c, DType::f64, Layout::contiguous));
    }
    r.gradients.push_back(grad(used, leaves, cotangents));
  }
  return r;
}

// Where a and b differ by more than rounding, relative to b's largest entry (or to 1 where that is smaller than
// rounding).
std::string compare(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return text(a.size(), " tensors, expected ", b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    const std::vector<double> va = a[k].to_vector<double>(), vb = b[k].to_vector<double>();
    if (a[k].shape() != b[k].shape()) return text("tensor ", k, ": shape ", a[k].shape(), ", expected ", b[k].shape());
    double largest = 1;
    for (double v : vb) largest = std::max(largest, std::abs(v));
    const double bound =
        64 * epsilon(DType::f64) * std::sqrt(static_cast<double>(std::max<size_t>(1, vb.size()))) * largest;
    for (size_t i = 0; i < va.size(); ++i)
      if (!(std::abs(va[i] - vb[i]) <= bound))
        return text("tensor ", k, " at element ", i, " is ", va[i], ", expected ", vb[i], " within ", bound);
  }
  return {};
}

}  // namespace

TEST_CASE("fused ops agree with their compositions for every subset of outputs") {
  for (const FusedCase& op : fused_cases()) {
    DYNAMIC_SECTION(op.name << ": fused") {
      int failures = 0;
      for (const FusedCase::Sample& s : op.samples) {
        const Result fused = run(s.fused, s), reference = run(s.reference, s);
        std::string complaint = compare(fused.outputs, reference.outputs);
        for (size_t k = 0; complaint.empty() && k < fused.gradients.size(); ++k) {
          complaint = compare(fused.gradients[k], reference.gradients[k]);
          if (!complaint.empty()) complaint = text("gradients with outputs ", k + 1, " (bits): ", complaint);
        }
        if (!complaint.empty() && ++failures <= 5)
          FAIL_CHECK(op.name << " " << shapes_of(s.inputs) << " " << s.label << ": " << complaint);
      }
      CHECK(failures == 0);
      CHECK(op.samples.size() >= 20);
    }
  }
}
