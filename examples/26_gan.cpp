// A GAN with gradient penalty (1704.00028): a generator learns to draw points around (2, -1).
#include <cstdio>

#include "argument.h"

using namespace isonorm;

// The mean of (|d critic / d x| - 1)^2 over random points x between real and fake ones.
Tensor gradient_penalty(nn::Module& critic, const Tensor& real, const Tensor& fake) {
  const Tensor t = rand({real.size(0), 1}), x = (real * t + fake * (1.0 - t)).require_grad();
  const Tensor slope = grad(critic(x).sum(), {x}, {.create_graph = true})[0];
  return (norm(slope, {1}) - 1.0).square().mean();
}

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 2000;
  manual_seed(1);
  nn::Sequential generator(nn::Linear(2, 32), nn::Relu(), nn::Linear(32, 2));
  nn::Sequential critic(nn::Linear(2, 32), nn::Relu(), nn::Linear(32, 1));
  const optim::AdamOptions adam{.lr = 3e-3, .beta1 = 0, .beta2 = 0.9};
  optim::Adam opt_g(generator.parameters(), adam), opt_c(critic.parameters(), adam);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 5; ++i) {
      const Tensor real = randn({64, 2}) * 0.5 + tensor({2.f, -1.f}), fake = detach(generator(randn({64, 2})));
      opt_c.zero_grad();
      (critic(fake).mean() - critic(real).mean() + gradient_penalty(critic, real, fake) * 10.0).backward();
      opt_c.step();
    }
    opt_g.zero_grad();
    (-critic(generator(randn({64, 2}))).mean()).backward();
    opt_g.step();
  }
  const Tensor drawn = detach(generator(randn({4096, 2}))), mean = drawn.mean(0);
  std::printf("mean (%.2f, %.2f), deviation %.2f\n", mean(0).item(), mean(1).item(), drawn.std(0).mean().item());
  nn::Linear plane(2, 1);  // its slope is its weight
  const double penalty = gradient_penalty(plane, drawn, drawn).item(), slope = norm(plane.weight).item();
  std::printf("penalty of a plane: off by %.1e\n", std::abs(penalty / std::pow(slope - 1, 2) - 1));
} catch (const Error& e) {
  return std::fprintf(stderr, "26_gan: %s\n", e.what()), 1;
}
