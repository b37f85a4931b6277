// Gradients of gradients: known derivatives, what is refused. Op by op they are compared with finite differences in
// tests/ops_test.cpp.
#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Catch::Matchers::Contains;

namespace {
constexpr BackwardOptions kGraph{.create_graph = true};
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

TEST_CASE("x^4 has derivatives up to the fourth") {
  const Tensor x = tensor({1.0, -2.0}).require_grad();
  Tensor y = square(square(x));
  const std::vector<std::vector<double>> expected = {{4, -32}, {12, 48}, {24, -48}, {24, 24}};
  for (const auto& e : expected) {
    y = grad(sum(y), {x}, {}, kGraph)[0];
    CHECK(values(y) == e);
  }
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a penalty on a gradient trains the weights that the gradient passes") {
  // f = sum (w x)^2, df/dx = 2 w^2 x; of its square summed, 4 w^4 x^2, the derivative by w is 16 w^3 x^2.
  const Tensor x = tensor({3.0}).require_grad(), w = tensor({{2.0}}).require_grad();
  const Tensor slope = grad(sum(square(linear(x, w))), {x}, {}, kGraph)[0];
  CHECK(values(slope) == std::vector<double>{24});
  backward(sum(square(slope)));
  CHECK(values(w.grad()) == std::vector<double>{16 * 8 * 9});
}

TEST_CASE("a cotangent, two outputs and a broadcast input have second derivatives") {
  const Tensor x = tensor({2.0}).require_grad(), c = tensor({1.0, 3.0}).require_grad();
  const std::vector<Tensor> outputs = {x * tensor({1.0, 10.0}) * x, exp(x)};
  const Tensor g = grad(outputs, std::vector<Tensor>{x}, std::vector<Tensor>{c, tensor({0.0})}, kGraph)[0];
  CHECK(values(g) == std::vector<double>{2 * 2 * 31});
  const auto second = grad(g, {x, c});
  CHECK(values(second[0]) == std::vector<double>{2 * 31});
  CHECK(values(second[1]) == std::vector<double>{4, 40});
}

TEST_CASE("what has no second derivative is one line with the op's name") {
  const Tensor x = tensor({{1.0, 2.0}}).require_grad();
  const Tensor loss = cross_entropy(x, tensor({1}));
  CHECK_THROWS_WITH(grad(loss, {x}, {}, kGraph), Contains("cross_entropy: it has no second derivative"));
  CHECK(grad(loss, {x})[0].defined());  // and the graph is as it was
  CHECK_THROWS_WITH(backward(sum(square(x)), {}, kGraph), Contains("create_graph is for grad()"));
  const Tensor w = tensor({{1.f, 2.f}}).require_grad(), rows = x.detach().to(DType::bf16).require_grad();
  CHECK_THROWS_WITH(grad(sum(linear(rows, w)), {rows}, {}, kGraph), Contains("linear: it has no second derivative"));
}
