// Three norms and their Jacobians, term by term: what LayerNorm does that RMSNorm does not, and where that makes no
// difference.
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

// The Jacobian dy/dx, row by row: the gradient of output i is row i.
std::vector<std::vector<double>> jacobian(Tensor (*f)(const Tensor&), const Tensor& at) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < at.numel(); ++i) {
    Tensor x = require_grad(detach(at)), pick = zeros_like(at);
    pick.mutable_data<double>()[i] = 1;
    rows.push_back(grad(f(x), {x}, pick)[0].to_vector<double>());
  }
  return rows;
}

Tensor layer(const Tensor& x) { return layer_norm(x, {}, {}, {.eps = 0}); }
Tensor rms(const Tensor& x) { return rms_norm(x, {}, {}, {.eps = 0}); }

// s (I - [1/d in every entry, LayerNorm only] - y y^T/d), s = 1/spread.
void show(const char* name, Tensor (*f)(const Tensor&), const Tensor& x, double spread, bool centred) {
  const std::vector<double> y = f(x).to_vector<double>();
  const auto j = jacobian(f, x);
  const double d = static_cast<double>(y.size());
  std::printf("%s: y = %s\n  entry      1/spread x ( I  - centring  - along y )   =  formula   autodiff\n", name,
              to_string(f(x)).c_str());
  for (size_t a = 0; a < y.size(); ++a)
    for (size_t b = 0; b < y.size(); ++b) {
      const double identity = a == b, centring = centred ? 1 / d : 0, along = y[a] * y[b] / d;
      std::printf("  (%zu, %zu)  %9.5f x (%2.0f  - %8.5f  - %8.5f)  = %9.5f  %9.5f\n", a, b, 1 / spread, identity,
                  centring, along, (identity - centring - along) / spread, j[a][b]);
    }
}

}  // namespace

int main() {
  for (const Tensor& x : {tensor({1.0, 2.0, 6.0}), tensor({-2.0, -1.0, 3.0})}) {
    std::printf("\nx = %s, mean %g\n\n", to_string(x).c_str(), mean(x).item());
    show("layer_norm", layer, x, std::sqrt(var(x, {}, 0).item()), true);
    show("rms_norm", rms, x, std::sqrt(mean(square(x)).item()), false);
  }
  std::printf(
      "\nOn the second row, whose mean is 0, the outputs agree, and the Jacobians differ by the centring term alone: P "
      "J_rms = J_layer.\n");
}
