// Optimizers and averages of a module that to(dtype) has converted since their construction.
#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("optimizers: a parameter that was converted after the first step is named") {
  nn::Linear layer(3, 2);
  const auto differentiate = [&](DType dtype) { backward(sum(layer(ones({1, 3}, {dtype})))); };
  optim::Adam adam(layer.parameters());
  differentiate(DType::f32);
  adam.step();
  layer.to(DType::f64);
  adam.zero_grad();
  differentiate(DType::f64);
  CHECK_THROWS_WITH(adam.step(), Catch::Contains("adam: parameter 0 of shape [2, 3] is f64 now, its state is f32; make "
                                                 "the optimizer after to(dtype)"));
  for (const Tensor& p : layer.parameters()) CHECK(p.grad().defined());  // nothing was lost
  optim::Adam(layer.parameters()).step();
}

TEST_CASE("optimizers: a parameter that was converted before the first step is trained") {
  nn::Linear layer(3, 2, {.bias = false});
  optim::Sgd sgd(layer.parameters(), {.lr = 1, .momentum = 0.5});
  layer.to(DType::f64);
  fill(layer.weight, 5);
  backward(sum(layer(ones({1, 3}, {DType::f64}))));
  sgd.step();
  CHECK(layer.weight.to_vector<double>() == std::vector<double>(6, 4));
}

TEST_CASE("ema: a parameter that was converted after the average was made is named") {
  nn::Linear layer(3, 2);
  optim::Ema ema(layer.parameters(), {.decay = 0.5});
  ema.update();
  layer.to(DType::f64);
  const std::vector<double> before = ema.averages()[0].to_vector<double>();
  CHECK_THROWS_WITH(ema.update(),
                    Catch::Contains("ema: parameter 0 is f64 [2, 3] on cpu now, its average is f32 [2, 3] on cpu; make "
                                    "the average after to() and replace()"));
  CHECK(ema.averages()[0].to_vector<double>() == before);
  CHECK(ema.state_dict().at("step").item() == 1);
}
