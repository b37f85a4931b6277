// A Vision Transformer whose form of the residual stream is chosen by one argument.
// usage: 06_vit [data folder] [steps] [form] [--device cuda]
#include <cstdio>
#include <iostream>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const data::FashionMnist set = data::FashionMnist::load(argc > 1 ? argv[1] : "");
  const int steps = argc > 2 ? whole_number(argv[2]) : 500;
  const streams::Form form = streams::form_named(argc > 3 ? argv[3] : "rms_norm");
  manual_seed(1);
  nn::Vit model = streams::make<nn::Vit>(
      {.image = 28, .patch = 7, .transformer = {.width = 64, .depth = 4, .heads = 4}}, {.form = form});
  model.to(device);
  optim::AdamW opt(model.parameters(), {.lr = 1e-3});
  const optim::Schedule schedule{.peak = opt.lr(), .warmup = steps / 10, .steps = steps};
  data::Loader loader(set.train, {.rows = 64, .seed = 1, .device = device});
  std::cout << name_of(form) << ": " << model.parameter_count() << " parameters\n";

  // Run it with layer_norm, rms_norm, crms_norm and crms_isometric: the losses agree up to rounding.
  for (int step = 0; step < steps; ++step) {
    const auto [images, labels] = loader.next();
    const Tensor loss = cross_entropy(model(images), labels);
    opt.zero_grad();
    loss.backward();
    optim::clip_grad_norm(model.parameters(), 1.0);
    opt.set_lr(schedule.lr(step));
    opt.step();
    if (step % 50 == 0) std::printf("%5d  loss %.6f\n", step, loss.item());
  }
} catch (const Error& e) {
  return std::fprintf(stderr, "06_vit: %s\n", e.what()), 1;
}
