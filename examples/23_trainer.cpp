// A whole trainer: progress, logs, the best model, saving by time, an early end.
// usage: 23_trainer [steps] [--device cuda]
#include <cstdio>
#include <filesystem>
#include <functional>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const int steps = argc > 1 ? whole_number(argv[1]) : 1000;
  manual_seed(1);
  const std::string sentences = data::made_text(1, 1 << 16);
  const data::Text text(memory_bytes({reinterpret_cast<const uint8_t*>(sentences.data()), sentences.size()}, "text"), 1,
                        0.1);
  nn::Gpt model({.vocab = text.vocab(), .context = 32, .transformer = {.width = 64, .depth = 2, .heads = 4}});
  model.to(device);
  optim::AdamW adamw(model.parameters());
  const optim::Schedule schedule{.peak = 3e-3, .warmup = std::min(20, steps), .steps = steps};
  const auto batch = [&](int64_t t) {
    const auto [x, y] = text.batch(16, 32, t);
    return training::Examples{x, y}.on(device);
  };
  const auto test_loss = [&] {
    NoGrad no_grad;
    const auto [x, y] = text.held_out_rows(0, 64, 32);
    return training::cross_entropy_of(model, training::Examples{x, y}.on(device)).item();
  };

  training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}});
  training::Loop loop(step, batch, [&](int64_t t) { return schedule.lr(t); });
  std::filesystem::remove("trainer.csv");  // of an earlier run
  training::CsvLog log("trainer.csv");
  training::BestLoss best(5);
  StatusLine line(stdout);
  loop.every(1, std::ref(log));
  loop.every(1, training::Progress(line, steps));
  loop.every(50, [&](const training::TrainingStep& s) {
    if (best.take(s.step, test_loss())) training::save_model("trainer_best.safetensors", model);
    return !best.over();
  });
  loop.every(10min,
             [&](const training::TrainingStep&) { return training::save_model("trainer.safetensors", model), true; });
  const bool all = loop.run(steps);
  std::printf("%s: the least test loss is %.4f, after step %d\n", all ? "done" : "no better any more", best.loss(),
              best.step());
} catch (const Error& e) {
  return std::fprintf(stderr, "23_trainer: %s\n", e.what()), 1;
}
