// A trainer of your own, made of callbacks: progress, a log, the best model, early stopping, timed saving. Started
// again, it resumes. usage: 29_own_trainer [steps] [--device cuda]
#include <cstdio>
#include <functional>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const int steps = argc > 1 ? whole_number(argv[1]) : 1000;
  manual_seed(1);
  const data::Text text(memory_bytes(data::made_text(1, 1 << 16), "made text"), 1, 0.1);  // the last tenth is held out
  const auto test = training::examples_of(text.held_out_rows(0, 64, 32)).on(device);
  nn::Gpt model({.vocab = text.vocab(), .context = 32, .transformer = {.width = 64, .depth = 2, .heads = 4}});
  model.to(device);
  optim::AdamW adamw(model.parameters());
  training::Step step(model, adamw, training::cross_entropy_of, {.limits = {.norm = 1}});
  const auto batch = [&](int64_t t) { return training::examples_of(text.batch(16, 32, t)).on(device); };
  training::Loop loop(step, batch, optim::Schedule{.peak = 3e-3, .warmup = std::min(20, steps), .steps = steps});

  training::BestLoss best(5);
  training::SavedTraining saved("own_trainer.ckpt", model, adamw, best);
  training::EventLog log("own_trainer_log", saved.done());  // for TensorBoard
  StatusLine line(stdout);
  loop.every(1, std::ref(log));
  loop.every(1, training::Progress(line, steps, saved.done()));
  loop.every(50, [&](const training::TrainingStep& s) {
    const training::Evaluation e = training::evaluate(model, test, s.step);
    log.evaluation(e);
    if (best.take(e.step, e.loss)) training::save_model("own_trainer_best.safetensors", model);
    return !best.over();
  });
  loop.every(10min, std::ref(saved));
  loop.run(best.over() ? saved.done() : steps, saved.done());
  saved.save(loop.step());
  std::printf("%s: the least test loss is %.4f, after step %d\n", best.over() ? "no better any more" : "done",
              best.loss(), best.step());
} catch (const Error& e) {
  return std::fprintf(stderr, "29_own_trainer: %s\n", e.what()), 1;
}
