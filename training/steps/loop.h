// Training loop: one step after the other, with callbacks between them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/system/stopwatch.h"
#include "training/steps/step.h"

namespace isonorm::training {

// True if x has neither NaN nor infinity, on any device. Always true for integers and an undefined tensor.
bool is_finite(const Tensor& x);
// Returns the name of the first tensor with NaN or infinity; empty if all are finite.
std::string not_finite(const TensorMap& tensors);

struct TrainingStep {
  int step = 0;  // counted from 1
  double lr = 0;
  double loss = 0;                           // before the update
  std::optional<double> gradient_norm = {};  // before clipping; none without a limit on the norm
  double seconds = 0;                        // since the loop was made
};

// How often something happens: every n steps, or after a span of time.
struct Interval {
  Interval(int steps = 0) : steps(steps) {}  // 0: never
  template <class Number, class Unit>
  Interval(std::chrono::duration<Number, Unit> time) : seconds(std::chrono::duration<double>(time).count()) {}
  // Reads "500", "30s", "10m" or "1.5h". Returns nothing for any other text.
  static std::optional<Interval> read(const std::string& word);

  int steps = 0;
  double seconds = 0;
};

struct LoopOptions {
  // If the loss or the norm of the gradients is not finite, run() throws "loop: step 17: the loss is nan: ...", with
  // the first tensor that is not finite. The weights are lost then. Callbacks are not called for this step, so they
  // cannot overwrite a checkpoint saved earlier. false: the loop continues.
  bool stop_at_nan = true;
};

// Takes steps with a batch and a learning rate for each step. The rate is set for the optimizer's first group
// (Optimizer::set_lr).
//
//   training::Loop loop(step, [&](int64_t t) { return examples_of(text.batch(16, 32, t)); },
//                       optim::Schedule{.steps = 1000});
//   loop.every(50, [](const training::TrainingStep& s) { return std::printf("%d  %.4f\n", s.step, s.loss), true; });
//   loop.run(1000);
class Loop {
 public:
  using Batches = std::function<Examples(int64_t step)>;  // step counts from 0
  using Rate = std::function<double(int64_t step)>;       // step counts from 0
  using Callback = std::function<bool(const TrainingStep& step)>;

  // Keeps a reference to `step`.
  Loop(Step& step, Batches batches, Rate rate, LoopOptions options = {});

  // Calls `callback` after every n-th step, or after the first step that ends a span of time. Callbacks run in order of
  // addition. A callback returns false to stop the loop after this step. Ranks (StepOptions::group) call it together,
  // when the time has passed on any rank.
  void every(Interval interval, Callback callback);

  // Takes the steps after `done` up to `steps`. Returns false if a callback stopped the loop, even after the last step.
  // The last step is complete, and all callbacks that were due have run.
  bool run(int steps, int done = 0);
  int step() const { return done_; }  // the last step that it took

 private:
  Step& step_;
  const Batches batches_;
  const Rate rate_;
  const LoopOptions options_;
  struct Call {
    Interval interval;
    Callback callback;
    double last;  // time of its last call, by watch_
  };
  bool is_due(const Call& call, int step);
  void check_finite(const TrainingStep& s, const Examples& batch) const;
  std::vector<Call> calls_;
  int done_ = 0;
  const Stopwatch watch_;
};

}  // namespace isonorm::training
