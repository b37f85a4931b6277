// `explain` computes with arithmetic of its own: here against the library's ops and their gradients.
#include "equivalence/services/explanation.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
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
  CHECK_THROWS(explain("batch_norm", {1}, {1}, 0));
  CHECK_THROWS(explain("rms_norm", {}, {}, 0));
  for (const char* norm : {"layer_norm", "rms_norm", "crms_norm", "crms_isometric"}) {
    CHECK_THROWS(explain(norm, {0, 0}, {1, 0}, 0));
    CHECK_THROWS(explain(norm, {1e200, 1}, {1, 0}, 1e-5));
  }
  CHECK_THROWS(explain("layer_norm", {2, 2}, {1, 0}, 0));
}
