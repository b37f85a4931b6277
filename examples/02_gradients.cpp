// Gradients: leaves, backward, a check against finite differences, and an op's rule seen from outside.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

int main() {
  // f(x, y) = sum(x^2 y): the gradients are 2 x y and x^2.
  Tensor x = tensor({1.0, 2.0, 3.0}), y = tensor({4.0, 5.0, 6.0});
  require_grad(x), require_grad(y);
  const Tensor f = sum(square(x) * y);
  backward(f);
  std::printf("f = %g\ndf/dx = %s\ndf/dy = %s\n\n", f.item(), to_string(gradient(x)).c_str(),
              to_string(gradient(y)).c_str());

  // A second backward adds to the gradients; a graph serves one backward.
  backward(sum(x));
  std::printf("after backward(sum(x)): df/dx = %s\n", to_string(gradient(x)).c_str());
  try {
    backward(f);
  } catch (const Error& e) {
    std::printf("error: %s\n\n", e.what());
  }

  // grad() gives gradients without touching the leaves, also of inner tensors; a cotangent stands for what comes after.
  const Tensor h = tanh(x);
  const auto g = grad(h * h, {x, h}, ones_like(x));
  std::printf("d(tanh^2)/dx = %s\nd(tanh^2)/dtanh = %s\n\n", to_string(g[0]).c_str(), to_string(g[1]).c_str());

  // Broadcasting is undone in the gradient: a number that went everywhere collects from everywhere.
  Tensor scale = tensor({2.0});
  require_grad(scale);
  backward(sum(x * scale));
  std::printf("d sum(x scale)/dscale = %g, the sum of x\n\n", gradient(scale).item());

  // Gradients of one's own function against central differences.
  const GradcheckResult result =
      gradcheck([](const std::vector<Tensor>& in) { return softplus(in[0] * in[1]); }, {x, y});
  std::printf("gradcheck of softplus(x y): %s\n", result.message().c_str());
}
