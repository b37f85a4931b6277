// The harness: every check over every row of tests/op_cases. One op alone: test_ops -c "values: exp(x)".
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/checks.h"
#include "tests/support/guard_allocator.h"
#include "tests/support/test_device.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

// On a device, too, a refusal is to come from the call.
[[maybe_unused]] const int kAtOnce = setenv("ISONORM_GPU_CHECKS", "now", 0);

// Runs check(sample) for every sample of every row, each row a section; reports at most five failures of a row.
template <class Check> void for_rows(const char* what, Check check) {
  guard_host_memory();
  const int64_t damaged = damaged_blocks();
  for (const OpCase& op : op_cases()) {
    DYNAMIC_SECTION(what << ": " << op.signature) {
      int failures = 0;
      for (const Sample& s : op.samples) {
        std::string complaint;
        try {
          complaint = check(op, s);
        } catch (const std::exception& e) {
          complaint = std::string("threw ") + e.what();
        }
        if (complaint.empty()) continue;
        if (++failures <= 5) FAIL_CHECK(op.signature << " " << s.name() << ": " << complaint);
      }
      CHECK(failures == 0);
      CHECK(damaged_blocks() == damaged);
    }
  }
}

// The first complaint over several variants, with the variant's name before it.
template <class Variants, class Check> std::string first_complaint(const Variants& variants, Check check) {
  for (auto v : variants) {
    const std::string c = check(v);
    if (!c.empty()) return text(name_of(v), ": ", c);
  }
  return {};
}

std::vector<Layout> layouts_of(const OpCase& op) {
  return {Layout::contiguous, Layout::offset, Layout::transposed, Layout::sliced,
          op.stretch_rows ? Layout::stretched : Layout::stretched_outer};
}

// Rules and views are the same on every device, and the program of the CPU checks all samples. An emulated kernel takes
// far longer, so on a device one of `of` samples is checked; `of` is prime to the number of layouts, so that all come
// up.
bool is_drawn(size_t met, size_t of) { return test_device() == kCpu || met % of == 0; }

// Measured: does the row that a test case checks have a sample whose gradient is not zero? If none has one, nothing was
// measured, and the row has to say that this is right.
class Measured {
 public:
  bool& of(const OpCase& op) {
    row_ = &op;
    return any_;
  }
  void check() const {
    if (!row_ || test_device() != kCpu) return;
    INFO(row_->signature << ": whether a sample has a gradient that is not zero, and OpCase::zero");
    CHECK(any_ != row_->zero);
  }

 private:
  const OpCase* row_ = nullptr;
  bool any_ = false;
};

}  // namespace

TEST_CASE("values agree with naive double-precision code in every dtype and layout") {
  static size_t met = 0;
  for_rows("values", [](const OpCase& op, const Sample& s) {
    return first_complaint(op.dtypes, [&](DType dtype) {
      return first_complaint(layouts_of(op), [&](Layout layout) {
        const bool wanted = layout == Layout::contiguous || (s.layouts && !s.large && is_drawn(met++, 7));
        return wanted ? check_values(op, s, dtype, layout) : std::string();
      });
    });
  });
}

TEST_CASE("gradients agree with finite differences") {
  static std::set<std::string>
      distinct;  // over all sections: shapes and attributes, as other random numbers are no other case
  static size_t checked = 0;
  Measured measured;
  for_rows("gradients", [&](const OpCase& op, const Sample& s) {
    if (!op.differentiable || !s.gradient || s.large) return std::string();
    if (!distinct.insert(op.signature + s.name()).second) return std::string();
    if (!is_drawn(distinct.size(), 60)) return std::string();
    ++checked;
    return check_gradient(op, s, measured.of(op));
  });
  measured.check();
  static bool printed = false;
  if (!distinct.empty() && !std::exchange(printed, true))
    std::atexit([] { std::printf("%zu gradient checks in f64\n", checked); });
}

TEST_CASE("gradients of gradients agree with finite differences") {
  if (test_device() != kCpu) return;  // rules are the same on every device
  static std::set<std::string> distinct;
  Measured measured;
  for_rows("second gradients", [&](const OpCase& op, const Sample& s) {
    if (!op.differentiable || !s.gradient || s.large) return std::string();
    if (!distinct.insert(op.signature + s.name()).second) return std::string();
    return check_second_gradient(op, s, measured.of(op));
  });
  measured.check();
}

TEST_CASE("gradients that are recorded are those that are not") {
  if (test_device() != kCpu) return;
  for_rows("recorded gradients", [](const OpCase& op, const Sample& s) {
    if (!op.differentiable || !s.gradient || s.large) return std::string();
    return first_complaint(op.dtypes, [&](DType dtype) { return check_recorded_gradient(s, dtype); });
  });
}

TEST_CASE("gradients do not depend on the layout of inputs and cotangents") {
  static size_t met = 0;
  for_rows("gradient layouts", [](const OpCase& op, const Sample& s) {
    if (!op.differentiable || !s.gradient || s.large || !s.layouts) return std::string();
    return first_complaint(layouts_of(op), [&](Layout layout) {
      return is_drawn(met++, 7) ? check_gradient_layout(s, layout) : std::string();
    });
  });
}

// Ops with a gradient of 0 that is no closed branch, so that an infinite cotangent makes it NaN.
constexpr std::string_view kNoBranch[] = {
    // The slope is 0 at a point or as a limit: of x^2 at 0, of 1 / x at infinity. tests/autograd/kink_test.cpp has x^0.
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "square", "reciprocal", "cos", "erf", "tanh",
    "sigmoid", "log_sigmoid", "softplus", "gelu", "gelu_tanh", "pow", "div",
    // The gradient is a difference: in a row with a single entry or with equal entries, cotangents cancel. Ignored rows
    // in cross_entropy are tested in tests/autograd/loss_test.cpp.
    "var", "recentre", "softmax", "log_softmax", "layer_norm", "normalize", "add_norm", "batch_norm", "cross_entropy",
    "scaled_dot_product_attention", "packed_attention", "nll_loss", "binary_cross_entropy",
    // While gradients are recorded, the gradient of an entry is a product of the others.
    "prod",
    // If the inputs have width 0, the hidden entries are gelu(0) = 0, and the gradient of w2 multiplies them.
    "mlp",
    // The forward computes the gradient for a cotangent of 1, and the backward multiplies it.
    "linear_cross_entropy",
    // Its results have other dtypes than the cotangents of the check.
    "to"};

TEST_CASE("a closed branch passes nothing, be the gradient that comes infinite or NaN") {
  static size_t met = 0;
  for_rows("closed branches", [](const OpCase& op, const Sample& s) {
    if (!op.differentiable || s.large || std::ranges::count(kNoBranch, op.name) > 0) return std::string();
    return is_drawn(met++, 7) ? check_closed(s) : std::string();
  });
}

TEST_CASE("gradients in f32 and bf16 agree with those in f64") {
  for_rows("gradient dtypes", [](const OpCase& op, const Sample& s) {
    if (!op.differentiable || !s.gradient || s.large) return std::string();
    return first_complaint(
        op.dtypes, [&](DType dtype) { return dtype == DType::f64 ? std::string() : check_gradient_dtype(s, dtype); });
  });
}

TEST_CASE("bits do not depend on the run or the number of threads") {
  static size_t met = 0;
  for_rows("bits", [](const OpCase& op, const Sample& s) {
    if (!is_drawn(met++, 8)) return std::string();
    return first_complaint(op.dtypes, [&](DType dtype) { return check_bits(s, dtype); });
  });
}

TEST_CASE("inputs on two devices are refused with both") {
  if (test_device() == kCpu) return;
  for_rows("two devices",
           [](const OpCase& op, const Sample& s) { return s.large ? std::string() : check_mixture(op, s); });
}

TEST_CASE("bad calls throw one line with the op's name and the values") {
  for (const OpCase& op : op_cases()) {
    DYNAMIC_SECTION("bad calls: " << op.signature) {
      for (const BadCall& bad : op.bad) {
        const std::string complaint = check_refusal(op, bad);
        if (!complaint.empty()) FAIL_CHECK(op.signature << ": " << complaint);
      }
      CHECK(op.refuses == !op.bad.empty());
    }
  }
}
