// softmax and log_softmax: values against plain f64 code, gradients against finite differences, infinities, every
// dimension.
#include "tests/support/catch.h"

#include <cmath>
#include <limits>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/softmax.h"
#include "tests/support/random.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::max_difference;
using test::randn;

TEST_CASE("softmax has the values of its formula, at every width and dtype") {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (int64_t n : {1, 2, 3, 7, 8, 10, 15, 16, 17, 40, 63, 64, 65, 127, 200, 1000}) {
      const Tensor x = randn({3, n}, 1, 5, 4, dtype);
      const auto in = x.to_vector<double>(), p = softmax(x).to_vector<double>(),
                 logs = log_softmax(x).to_vector<double>();
      // exp to 1 ulp of an argument rounded at |x| <= 30, a sum of n, a division; half an ulp of bf16 for its store.
      const double eps = epsilon(acc_dtype(dtype)) * (32 + std::sqrt(double(n))) + (dtype == DType::bf16 ? 0x1p-8 : 0);
      for (int64_t r = 0; r < 3; ++r) {
        double top = -1e300, total = 0;
        for (int64_t i = 0; i < n; ++i) top = std::max(top, in[r * n + i]);
        for (int64_t i = 0; i < n; ++i) total += std::exp(in[r * n + i] - top);
        for (int64_t i = 0; i < n; ++i) {
          const double log_p = in[r * n + i] - top - std::log(total);
          INFO(name_of(dtype) << " n " << n << " i " << i);
          REQUIRE(std::abs(p[r * n + i] - std::exp(log_p)) <= eps * std::exp(log_p));
          REQUIRE(std::abs(logs[r * n + i] - log_p) <= eps * (1 + std::abs(log_p)));
        }
      }
    }
}

TEST_CASE("softmax gradients agree with finite differences along every dimension") {
  const Tensor x = randn({3, 5, 19}, 2, 0, 2);
  for (int dim : {0, 1, 2, -1}) {
    const auto r = gradcheck([&](const std::vector<Tensor>& v) { return softmax(v[0], dim); }, {x});
    INFO(r.message());
    CHECK(r.ok);
    const auto l = gradcheck([&](const std::vector<Tensor>& v) { return log_softmax(v[0], dim); }, {x});
    INFO(l.message());
    CHECK(l.ok);
    CHECK(max_difference(sum(softmax(x, dim), {dim}), sum(softmax(x, dim), {dim}) * 0.0 + 1.0) < 1e-15);
  }
  CHECK(max_difference(softmax(transpose(x, 0, 2)), transpose(softmax(x, 0), 0, 2)) == 0);
}

TEST_CASE("softmax at the edges of the numbers") {
  const double inf = std::numeric_limits<double>::infinity();
  const auto p = softmax(tensor({-inf, 1e4, 1e4, -1e4})).to_vector<double>();
  CHECK(p == std::vector<double>{0, 0.5, 0.5, 0});
  CHECK(log_softmax(tensor({-inf, 1e4})).to_vector<double>() == std::vector<double>{-inf, 0});
  CHECK(std::isnan(softmax(tensor({-inf, -inf})).to_vector<double>()[0]));
  CHECK(std::isnan(softmax(tensor({1.0, std::nan(""), 2.0})).to_vector<double>()[0]));
  CHECK(softmax(empty({0, 3})).shape() == Dims{0, 3});
  CHECK(softmax(empty({3, 0})).shape() == Dims{3, 0});
  CHECK_THROWS_WITH(softmax(empty({})), Contains("softmax: the input has rank 0"));
  CHECK_THROWS_WITH(log_softmax(empty({2}, {DType::i64})), Contains("log_softmax: dtype is i64"));
  CHECK_THROWS_WITH(softmax(empty({2, 2}), 2), Contains("softmax: dimension 2"));
}
