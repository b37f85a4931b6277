// LayerNorm's backward by its formula (docs/normalization.md, "The backward, derived") and by autodiff, and three facts
// about it: its entries sum to 0; it is orthogonal to x only without eps; the gradient of sum(y) is 0.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

double largest(const Tensor& x) { return amax(abs(x)).item(); }

// dx = s (dy - mean dy - y mean(dy y)), s = 1 / sqrt(var x + eps).
Tensor by_formula(const Tensor& x, const Tensor& dy, double eps) {
  const Tensor c = x - x.mean(), s = 1.0 / sqrt(mean(square(c)) + eps), y = c * s;
  return s * (dy - dy.mean() - y * mean(dy * y));
}

}  // namespace

int main() {
  manual_seed(31);
  const Tensor x = randn({10}, {DType::f64}).require_grad(), dy = randn({10}, {DType::f64});
  std::printf("%6s  %18s  %10s  %10s  %16s\n", "eps", "formula - autodiff", "sum of dx", "x . dx", "dx of sum(y)");
  for (const double eps : {0.0, 1e-5, 0.1}) {
    const Tensor dx = grad(sum(layer_norm(x, {.eps = eps}) * dy), {x})[0];
    const Tensor of_sum = grad(sum(layer_norm(x, {.eps = eps})), {x})[0];
    std::printf("%6g  %18.1e  %10.1e  %+10.1e  %16.1e\n", eps, largest(by_formula(x, dy, eps) - dx), dx.sum().item(),
                sum(x * dx).item(), largest(of_sum));
  }
}
