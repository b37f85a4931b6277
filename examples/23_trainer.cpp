// `isonorm train` in a program: progress, a log, the best model, early stopping, timed saving. Started again, it
// resumes. usage: 23_trainer [steps] [--device cuda]
#include <cstdio>
#include <fstream>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  std::ofstream("trainer.txt") << data::made_text(1, 1 << 16);
  training::TrainerOptions o;
  o.training.device = take_device(argc, argv);
  o.training.steps = argc > 1 ? whole_number(argv[1]) : 1000;
  o.training.model = {training::kGpt, {.width = 64, .depth = 2, .heads = 4}, {{"context", 32}}};
  o.training.data = "trainer.txt";  // whose last tenth is held out
  o.training.batch = 16, o.training.lr = 3e-3;
  o.evaluate_every = 50, o.patience = 5, o.save_every = 10min;
  o.checkpoint = "trainer.ckpt", o.best = "trainer_best.ckpt", o.tensorboard = "trainer_log";
  training::Trainer trainer(o);
  trainer.train();
  const training::TrainingResult& result = trainer.result();
  std::printf("%s: the least test loss is %.4f, after step %d\n", result.patience > 0 ? "no better any more" : "done",
              result.best->loss, result.best->step);
} catch (const std::exception& e) {
  return std::fprintf(stderr, "23_trainer: %s\n", e.what()), 1;
}
