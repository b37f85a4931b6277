// A Vision Transformer whose residual stream is a matter of one argument.
// usage: 06_vit [data folder] [steps] [form] [--device cuda]
#include <cstdio>

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
  const optim::Schedule schedule{.peak = 1e-3, .warmup = steps / 10, .steps = steps};
  data::Loader loader(set.train, {.rows = 64, .seed = 1});
  std::printf("%s: %lld parameters\n", name_of(form), static_cast<long long>(model.parameter_count()));

  training::Step step(model, opt, training::cross_entropy_of, {.limits = {.norm = 1}});
  const auto next = [&](int64_t) -> training::Examples {
    const data::Batch batch = loader.next();
    return training::Examples{batch.images, batch.labels}.on(device);
  };
  training::Loop loop(step, next, [&](int64_t t) { return schedule.lr(t); });
  // Run it with layer_norm, rms_norm, crms_norm and crms_isometric: the losses are the same to rounding.
  loop.every(1, [](const training::TrainingStep& s) {
    if (s.step % 50 == 1) std::printf("%5d  loss %.6f\n", s.step, s.loss);
    return true;
  });
  loop.run(steps);
} catch (const Error& e) {
  return std::fprintf(stderr, "06_vit: %s\n", e.what()), 1;
}
