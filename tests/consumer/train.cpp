// Fits a line with the installed library.
#include <isonorm/isonorm.h>

#include <cmath>
#include <cstdio>

#include "core/tensor.h"

using namespace isonorm;

int main() {
  const Tensor x = from_vector<float>({-2, -1, 0, 1, 2, 3}, {6, 1});
  const Tensor y = x * 3.0 + 0.5;
  Tensor w = require_grad(from_vector<float>({0}, {1, 1})), b = require_grad(from_vector<float>({0}, {1}));
  optim::AdamW opt({w, b}, {.lr = 0.1, .weight_decay = 0});
  for (int step = 0; step < 500; ++step) {
    const Tensor loss = mean(square(matmul(x, w) + b - y));
    opt.zero_grad();
    backward(loss);
    opt.step(optim::clip_factor(optim::grad_norm(opt.parameters()), 10));
  }
  std::printf("w %.3f b %.3f\n", w.item(), b.item());
  return std::abs(w.item() - 3) < 1e-2 && std::abs(b.item() - 0.5) < 1e-2 && users_own_tensor_header() == 42 ? 0 : 1;
}
