// `explain` computes with arithmetic of its own: here against the library's ops and their gradients.
#include "equivalence/services/explanation.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "nn/group_norm.h"
#include "tests/support/catch.h"

using namespace isonorm;
using services::explain;

namespace {

Tensor library_norm(const std::string& name, const Tensor& x, double eps) {
  const NormOptions options{.eps = eps};
  if (name == "layer_norm") return layer_norm(x, {}, {}, options);
  if (name == "rms_norm") return rms_norm(x, {}, {}, options);
  return name == "crms_norm" ? crms_norm(x, {}, {}, options) : crms_isometric_norm(x, {}, {}, options);
}

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double scale = 0;
  for (double v : b) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 64 * 0x1p-52 * scale);
}

}  // namespace

TEST_CASE("explain: values and gradients are the library's") {
  const std::vector<std::pair<std::vector<double>, std::vector<double>>> rows = {
      {{1, 2, 3}, {1, 0, 0}},
      {{-1.5, 0.25, 2, 8, -3}, {0.5, -1, 2, 0.1, -0.7}},
      {{0.3, -0.2}, {1, 1}},
      {{1, 2, 3, 4, 5, 6, 7, 8}, {1, -1, 1, -1, 1, -1, 1, 2}}};
  for (const char* norm : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric"})
    for (const auto& [row, dy] : rows)
      for (double eps : {1e-5, 0.5}) {
        const int64_t n = static_cast<int64_t>(row.size());
        const Tensor x = from_vector(row, {n});
        require_grad(x);
        const Tensor y = library_norm(norm, x, eps);
        backward(y, from_vector(dy, {n}));
        const services::Explanation e = explain(norm, row, dy, eps);
        check_close(e.y, y.to_vector<double>());
        check_close(e.dx, x.grad().to_vector<double>());
      }
}

TEST_CASE("explain: the text shows each term with its numbers") {
  const std::string ln = explain("layer_norm", {1, 2, 3}, {1, 0, 0}, 1e-5).text;
  for (const char* part : {"(1 + 2 + 3) / 3", "= 2\n", "(-1, 0, 1)", "(1 + 0 + 1) / 3", "0.666667", "Jacobian"})
    CHECK(ln.find(part) != std::string::npos);
  // x = (1, 2), d = 3, eps = 0: r = sqrt((1 + 4 + 9) / 3).
  const std::string crms = explain("crms_norm", {1, 2}, {1, 0}, 0).text;
  CHECK(crms.find("(1, 2, -3)") != std::string::npos);
  CHECK(crms.find("2.16025") != std::string::npos);
  // x = (1, 2), d = 3: r = sqrt((1 + 4) / 3), and -y_1 y_2 / (d r) = -(2 / r^2) / (3 r) = -0.309839.
  const std::string isometric = explain("crms_isometric", {1, 2}, {1, 0}, 0).text;
  for (const char* part : {"crms_isometric of the stored row", "(1 + 4) / 3", "1.29099", "-0.309839"})
    CHECK(isometric.find(part) != std::string::npos);
  CHECK_THROWS(explain("group_norm", {1}, {1}, 0));
  CHECK_THROWS(explain("batch_norm", {1}, {1}, 0));
  CHECK_THROWS(explain("rms_norm", {}, {}, 0));
  for (const char* norm : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric"}) {
    CHECK_THROWS(explain(norm, {0, 0}, {1, 0}, 0));
    CHECK_THROWS(explain(norm, {1e200, 1}, {1, 0}, 1e-5));
  }
  CHECK_THROWS(explain("layer_norm", {2, 2}, {1, 0}, 0));
}

namespace {

using Row = std::vector<double>;

// z and the gradients of <dz, z> in x, gain and bias by the library; batch_norm normalises a channel.
struct Library {
  Tensor x, gain, bias, z;
  Library(const std::string& norm, const Row& row, const Row& gains, const Row& biases, double eps)
      : x(require_grad(from_vector(row, {static_cast<int64_t>(row.size())}))),
        gain(require_grad(from_vector(gains, {static_cast<int64_t>(gains.size())}))),
        bias(require_grad(from_vector(biases, {static_cast<int64_t>(biases.size())}))),
        z(library_norm(norm == "batch_norm" ? "layer_norm" : norm, x, eps) * gain + bias) {}
};

}  // namespace

TEST_CASE("explain: gain and bias, with the library's gradients") {
  const Row row = {-1.5, 0.25, 2, 8}, dz = {0.5, -1, 2, 0.1};
  for (const char* norm : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric", "batch_norm"}) {
    const bool batch = std::string(norm) == "batch_norm";
    const Row gain = batch ? Row{1.5} : Row{1.5, -2, 0.5, 3}, bias = batch ? Row{0.3} : Row{1, 2, 3, 4};
    const Library library(norm, row, gain, bias, 1e-3);
    backward(library.z, from_vector(dz, {4}));
    const services::Explanation e = explain(norm, row, dz, 1e-3, {.gain = gain, .bias = bias});
    check_close(e.dx, library.x.grad().to_vector<double>());
    check_close(e.dgain, library.gain.grad().to_vector<double>());
    check_close(e.dbias, library.bias.grad().to_vector<double>());
    CHECK(e.text.find("z = gain y + bias") != std::string::npos);
    CHECK(explain(norm, row, dz, 1e-3, {.bias = bias}).dgain.size() == gain.size());
    CHECK_THROWS(explain(norm, row, dz, 1e-3, {.gain = {1, 2}}));
    CHECK_THROWS(explain(norm, row, {1}, 1e-3));
  }
  CHECK(explain("layer_norm", row, dz, 1e-3).dgain.empty());
}

TEST_CASE("explain: batch_norm and its running statistics are the module's") {
  const Row row = {1, 2, 4};
  nn::BatchNorm module(1, {.eps = 0.5});
  module.to(DType::f64);
  const Tensor y = module(from_vector(row, {3, 1, 1, 1}));
  const services::Explanation e = explain("batch_norm", row, {1, 0, 0}, 0.5);
  check_close(e.y, y.to_vector<double>());
  // 0.1 (7 / 3) and 0.9 + 0.1 (7 / 3): the mean, and by chance the unbiased variance (14 / 9) 3 / 2, are both 7 / 3.
  CHECK(std::abs(module.running_mean.item() - 0.7 / 3) < 1e-15);
  CHECK(std::abs(module.running_var.item() - (0.9 + 0.7 / 3)) < 1e-15);
  CHECK(e.text.find("= 0.233333\n") != std::string::npos);
  CHECK(e.text.find("= 1.13333\n") != std::string::npos);
}

TEST_CASE("explain: two-point differences have errors of h^2 and of rounding / h") {
  const Row row = {1, 2, 4}, dz = {1, 0, 0};
  for (const char* norm : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric", "batch_norm"}) {
    const auto errors = explain(norm, row, dz, 1e-5, {.gradcheck = true}).gradcheck;
    REQUIRE(errors.size() == 10);
    // Errors of h^2: a step of a tenth gives a hundredth.
    CHECK(std::abs(errors[1].f64 / errors[2].f64 - 100) < 1);
    CHECK(std::abs(errors[2].f64 / errors[3].f64 - 100) < 1);
    CHECK(errors[4].f64 < 1e-9);
    CHECK(errors[9].f64 > errors[4].f64);
    // In f32 the rounding of a result near 1 is divided by 2h: 2^-24 / 2e-5 = 3e-3. From 1e-8 on x + h is x.
    CHECK(errors[1].f32 < 1e-3);
    CHECK(errors[4].f32 > errors[1].f32);
    const Row dx = explain(norm, row, dz, 1e-5).dx;
    double largest = 0;
    for (double v : dx) largest = std::max(largest, std::abs(v));
    CHECK(errors[8].f32 == largest);
  }
  CHECK(explain("rms_norm", row, dz, 1e-5).gradcheck.empty());
}
