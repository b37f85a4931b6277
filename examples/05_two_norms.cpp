// Two norms and their Jacobians, term by term: the part that only LayerNorm has, and the inputs for which it makes no
// difference.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

// The Jacobian dy/dx: the gradient of output i is row i.
Tensor jacobian(Tensor (*f)(const Tensor&), const Tensor& at) {
  const Tensor x = at.clone().require_grad();
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < x.numel(); ++i) rows.push_back(grad(f(x)[i], {x})[0]);
  return stack(rows);
}

Tensor layer(const Tensor& x) { return layer_norm(x, {.eps = 0}); }
Tensor rms(const Tensor& x) { return rms_norm(x, {.eps = 0}); }

// s (I - [1/d in every entry, LayerNorm only] - y y^T/d), s = 1/spread.
void show(const char* name, Tensor (*f)(const Tensor&), const Tensor& x, double spread, bool centred) {
  const Tensor y = f(x), j = jacobian(f, x);
  const int d = static_cast<int>(x.numel());
  std::printf("%s: y = %s\n  entry      1/spread x ( I  - centring  - along y )   =  formula   autodiff\n", name,
              to_string(y).c_str());
  for (int a = 0; a < d; ++a)
    for (int b = 0; b < d; ++b) {
      const double identity = a == b, centring = centred ? 1.0 / d : 0, along = y[a].item() * y[b].item() / d;
      std::printf("  (%d, %d)  %9.5f x (%2.0f  - %8.5f  - %8.5f)  = %9.5f  %9.5f\n", a, b, 1 / spread, identity,
                  centring, along, (identity - centring - along) / spread, j[a][b].item());
    }
}

}  // namespace

int main() {
  for (const Tensor& x : {tensor({1.0, 2.0, 6.0}), tensor({-2.0, -1.0, 3.0})}) {
    std::printf("\nx = %s, mean %g\n\n", to_string(x).c_str(), x.mean().item());
    show("layer_norm", layer, x, (x - x.mean()).square().mean().sqrt().item(), true);
    show("rms_norm", rms, x, x.square().mean().sqrt().item(), false);
  }
  std::printf(
      "\nOn the second row, whose mean is 0, the outputs agree, and the Jacobians differ by the centring term alone: P "
      "J_rms = J_layer.\n");
}
