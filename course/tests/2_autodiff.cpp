// Visible tests of lab 2.
#include "labs/2_autodiff.h"

#include <cmath>

#include "support/tests.h"

namespace course {
namespace {

const Test kTape("a b + tanh(a)", 2, [] {
  Tape t;
  const Var a = t.leaf(0.5), b = t.leaf(-2), y = t.add(t.mul(a, b), t.tanh(a));
  const auto g = t.backward(y);
  expect_close("value", tensor({t.value(y)}), tensor({-1 + std::tanh(0.5)}));
  expect_close("gradient", tensor({g[a.place], g[b.place]}), tensor({-2 + 1 - std::pow(std::tanh(0.5), 2), 0.5}));
});

const Test kShared("a number that is used twice collects both gradients", 1, [] {
  Tape t;
  const Var a = t.leaf(3), square = t.mul(a, a), y = t.mul(square, a);
  expect_close("d(a^3)/da", tensor({t.backward(y)[a.place]}), tensor({27.}));
});

const Test kGraph("c = b + b, b = a + a: dc/da is 4", 1, [] {
  const size_t a = 2, b = 0, c = 1;
  Graph graph(3);
  graph[b] = {{a, 1}, {a, 1}};
  graph[c] = {{b, 1}, {b, 1}};
  expect_close("gradients", from_vector(gradients(graph, c), {3}), tensor({2., 1., 4.}));
});

const Test kNumeric("central differences", 1, [] {
  const Tensor x = random({2, 3}, 1), at = x.clone().require_grad();
  const Scalar f = [](const Tensor& t) { return (t.tanh() * t).sum(); };
  check(deviation(numeric_gradient(f, x), grad(f(at), {at})[0]) < 1e-8, "they are not the gradient");
});

const Test kHessian("the Hessian of sum x^3 is diagonal", 2, [] {
  const Tensor x = random({4}, 2), v = random({4}, 3);
  expect_close("H v", hessian_times([](const Tensor& t) { return t.pow(3).sum(); }, x, v), x * v * 6.0);
});

}  // namespace
}  // namespace course
