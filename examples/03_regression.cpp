// Regression: a small network learns a curve. Every training has the same loop: forward, zero_grad, backward, step.
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

struct Net : nn::Module {
  nn::Linear& fc1 = add("fc1", nn::Linear(1, 32));
  nn::Linear& fc2 = add("fc2", nn::Linear(32, 1));
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 1000;
  manual_seed(1);
  const Tensor x = linspace(-3, 3, 200).unsqueeze(1);
  const Tensor y = sin(x) + randn_like(x) * 0.05;

  Net net;
  optim::Adam opt(net.parameters(), {.lr = 1e-2});
  for (int step = 0; step <= steps; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    opt.zero_grad();
    loss.backward();
    opt.step();
    if (step % (steps / 5 + 1) == 0 || step == steps) std::printf("%5d  loss %.5f\n", step, loss.item());
  }
  const NoGrad no_grad;
  for (double at : {-2.0, 0.0, 2.0})
    std::printf("f(%4.1f) = %6.3f, sin %6.3f\n", at, net(full({1, 1}, at)).item(), std::sin(at));
} catch (const Error& e) {
  return std::fprintf(stderr, "03_regression: %s\n", e.what()), 1;
}
