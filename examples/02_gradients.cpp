// Gradients: leaves, backward, gradients of gradients, and a check against finite differences.
#include <iostream>

#include <isonorm/isonorm.h>

using namespace isonorm;

int main() {
  // f(x, y) = sum(x^2 y): the gradients are 2 x y and x^2.
  const Tensor x = tensor({1.0, 2.0, 3.0}).require_grad(), y = tensor({4.0, 5.0, 6.0}).require_grad();
  const Tensor f = (x.square() * y).sum();
  f.backward();
  std::cout << "f = " << f << "\ndf/dx = " << x.grad() << "\ndf/dy = " << y.grad() << "\n\n";

  // A second backward adds to the gradients. Each graph serves one backward.
  x.sum().backward();
  std::cout << "after x.sum().backward(): df/dx = " << x.grad() << "\n";
  try {
    f.backward();
  } catch (const Error& e) {
    std::cout << "error: " << e.what() << "\n\n";
  }

  // grad() returns gradients, also of inner tensors, without changing the leaves. A cotangent is the gradient from
  // outside.
  const Tensor h = x.tanh();
  const auto g = grad(h * h, {x, h}, ones_like(x));
  std::cout << "d(tanh^2)/dx = " << g[0] << "\nd(tanh^2)/dtanh = " << g[1] << "\n\n";

  // With create_graph a gradient can be differentiated: the second derivative of x^3 is 6 x.
  const Tensor slope = grad(x.pow(3).sum(), {x}, {.create_graph = true})[0];
  std::cout << "d2(x^3)/dx2 = " << grad(slope.sum(), {x})[0] << "\n\n";

  // The gradient undoes broadcasting: it sums over all entries that the number was broadcast to.
  const Tensor scale = tensor({2.0}).require_grad();
  (x * scale).sum().backward();
  std::cout << "d sum(x scale)/dscale = " << scale.grad() << ", the sum of x\n\n";

  // Gradients of your own function against central differences.
  const auto result = gradcheck([](const std::vector<Tensor>& in) { return softplus(in[0] * in[1]); }, {x, y});
  std::cout << "gradcheck of softplus(x y): " << result.message() << "\n";
}
