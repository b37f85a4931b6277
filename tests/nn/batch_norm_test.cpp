// Batch norm in evaluation mode, with its running statistics.
#include <cmath>

#include "autograd/grad_mode.h"
#include "nn/group_norm.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;

TEST_CASE("batch norm: in evaluation values far from zero keep the digits of their distance from the running mean") {
  const NoGrad no_grad;
  BatchNorm norm(3);
  copy_into(norm.running_mean, tensor({1e4f, 1e4f + 0.25f, -3e4f}));
  copy_into(norm.running_var, tensor({1.f, 0.01f, 4.f}));
  copy_into(norm.weight, tensor({1.f, -0.5f, 2.f}));
  copy_into(norm.bias, tensor({0.f, 0.125f, -1.f}));
  norm.eval();
  Tensor x = randn({512, 3}) * tensor({1.f, 0.1f, 2.f}) + norm.running_mean;
  const auto wide = [](const Tensor& t) { return t.to(DType::f64); };
  const Tensor exact =
      (wide(x) - wide(norm.running_mean)) / sqrt(wide(norm.running_var) + 1e-5) * wide(norm.weight) + wide(norm.bias);
  // Four operations on numbers up to 12, two on the scale.
  CHECK(largest(wide(norm(x)) - exact) < 6 * 12 * epsilon(DType::f32));
}
