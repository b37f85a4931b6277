// The gradient check itself: it accepts right gradients, also of rows far from 0, and names the entry where one is
// wrong.
#include "autograd/gradcheck.h"

#include "autograd/node.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using List = std::vector<Tensor>;

namespace {

// x^2 whose rule multiplies the gradient of one element by 1 + fault.
Tensor faulty_square(const Tensor& x, double fault) {
  Tensor y = square(detach(x));
  if (auto* n = track("faulty_square", {&y}, {&x}))
    n->backward = [x = save(x), fault](Flow& g) {
      Tensor dx = mul(mul(g.out(), x), 2.0);
      dx.mutable_data<double>()[4] *= 1 + fault;
      g.give(0, dx);
    };
  return y;
}

Tensor values() { return from_vector<double>({0.5, -1, 2, 0.25, 3, -0.75}, {2, 3}); }

}  // namespace

TEST_CASE("gradcheck accepts right gradients of several inputs and outputs") {
  const Tensor w = from_vector<double>({1, 0.5, -1, 2, 0.1, 0.7}, {3, 2});
  const auto f = [](const List& x) { return List{tanh(matmul(x[0], x[1])), sum(exp(x[0])), argmax(x[1])}; };
  const GradcheckResult r = gradcheck(f, {values(), w});
  INFO(r.message());
  CHECK(r.ok);
  CHECK(r.entries == 12);
  CHECK(r.error < 1e-10);
}

TEST_CASE("gradcheck finds an error of a millionth and says where it is") {
  const auto f = [](double fault) { return [=](const List& x) { return faulty_square(x[0], fault); }; };
  CHECK(gradcheck(f(0), {values()}).ok);
  const GradcheckResult r = gradcheck(f(1e-6), {values()});
  CHECK_FALSE(r.ok);
  CHECK(r.input == 0);
  CHECK(r.index == Dims{1, 1});
  CHECK(r.error == Approx(1e-6).epsilon(0.01));
  CHECK(r.analytic / r.numeric - 1 == Approx(1e-6).epsilon(0.01));
  CHECK_THAT(r.message(), Contains("input 0 at [1, 1]"));
}

TEST_CASE("gradcheck takes its step from the spread of a row") {
  const auto f = [](const List& x) {
    const Tensor centred = x[0] - mean(x[0], {-1}, true);
    return centred * rsqrt(mean(square(centred), {-1}, true));
  };
  const Tensor far = from_vector<double>({1e4, 1e4 + 1, 1e4 - 0.5, 3e-3, 1e-3, -2e-3}, {2, 3});
  const GradcheckResult r = gradcheck(f, {far});
  INFO(r.message());
  CHECK(r.ok);
}

TEST_CASE("gradcheck sees a missing gradient, a gradient of zero and a NaN") {
  CHECK_FALSE(gradcheck([](const List& x) { return detach(x[0]) * x[0]; }, {values()}).ok);
  CHECK_FALSE(gradcheck([](const List& x) { return detach(x[0]); }, {values()}).ok);
  CHECK(gradcheck([](const List& x) { return sign(x[0]); }, {values()}).ok);
  CHECK_FALSE(gradcheck([](const List& x) { return faulty_square(x[0], NAN); }, {values()}).ok);
}

TEST_CASE("gradcheck refuses what it cannot check") {
  const auto same = [](const List& x) { return x[0] * 1.0; };
  CHECK_THROWS_WITH(gradcheck(same, {tensor({1.f})}), Contains("f32") && Contains("[1]"));
  CHECK_THROWS_WITH(gradcheck([](const auto& x) { return x[0].to(DType::f32); }, {values()}), Contains("output"));
  int calls = 0;
  CHECK_THROWS_WITH(gradcheck([&](const List& x) { return x[0] + double(++calls); }, {values()}), Contains("random"));
}
