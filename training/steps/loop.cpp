#include "training/steps/loop.h"

namespace isonorm::training {

Loop::Loop(Step& step, Batches batches, Rate rate)
    : step_(step), batches_(std::move(batches)), rate_(std::move(rate)) {}

void Loop::every(int n, Callback callback) {
  check(n >= 0, "loop: every ", n, " steps, expected 0 or more");
  callbacks_.emplace_back(n, std::move(callback));
}

bool Loop::run(int steps, int done) {
  bool go_on = true;
  for (int t = done; t < steps && go_on; ++t) {
    TrainingStep s{.step = t + 1, .lr = rate_(t)};
    const StepResult r = step_(batches_(t), s.lr);
    s.loss = r.loss, s.gradient_norm = r.gradient_norm;
    s.seconds = watch_.seconds();
    for (const auto& [n, callback] : callbacks_)
      if (n > 0 && s.step % n == 0) go_on = callback(s) && go_on;
  }
  return go_on;
}

}  // namespace isonorm::training
