// grad() of one output takes its inputs as a list in braces or as the std::vector that parameters() returns.
#include "autograd/engine.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "nn/linear.h"
#include "tests/support/catch.h"

using namespace isonorm;
using Values = std::vector<double>;

TEST_CASE("grad: parameters() of a module are inputs") {
  nn::Linear net(2, 1);  // y = w x + b
  const Tensor x = tensor({{3.f, 4.f}});
  const std::vector<Tensor> slopes = grad(sum(net(x)), net.parameters());
  CHECK(slopes[0].to_vector<double>() == Values{3, 4});
  CHECK(slopes[1].to_vector<double>() == Values{1});
  CHECK(grad(net(x), net.parameters(), tensor({{2.f}}))[0].to_vector<double>() == Values{6, 8});
  CHECK_FALSE(net.weight.grad().defined());

  // d y^2 / dw = 2 y x, and the sum of these has the derivative 2 x (x_0 + x_1) by w.
  const std::vector<Tensor> first = grad(sum(square(net(x))), net.parameters(), {.create_graph = true});
  CHECK(grad(sum(first[0]), net.parameters())[0].to_vector<double>() == Values{2 * 3 * 7, 2 * 4 * 7});
}

TEST_CASE("grad: inputs in braces, a single output of several forms") {
  nn::Linear net(2, 1);
  const Tensor x = tensor({{3.f, 4.f}}), y = net(x);
  CHECK(grad(y[0], {net.weight}, {}, {.retain_graph = true})[0].to_vector<double>() == Values{3, 4});
  CHECK(grad({y}, {net.bias}, {}, {.retain_graph = true})[0].item() == 1);
  const std::vector<Tensor> outputs{y, y * 2.0};
  CHECK(grad(outputs, net.parameters())[1].item() == 3);
}
