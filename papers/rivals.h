// Internal: Models that are trained on the same batches in turns: what they learn, and what time their steps take.
#pragma once

#include <memory>

#include "optim/adam.h"
#include "papers/experiment.h"
#include "papers/timing/turns.h"
#include "training/steps/step.h"

namespace isonorm::papers {

struct Rival {
  Rival(const char* name, const char* css, std::unique_ptr<nn::Module> model, Device device,
        const optim::AdamOptions& options, training::Objective loss = training::cross_entropy_of);

  const char *name, *css;
  std::unique_ptr<nn::Module> model;  // of f32
  optim::Adam optimizer;
  training::Step step;
  TimedSteps steps = {};
};
using Rivals = std::vector<std::unique_ptr<Rival>>;

// Trains all on each batch at the rate of its step, beginning with another one each time. What a step draws (noise,
// dropout) is the same for all.
void race(const ExperimentOptions& o, const Rivals& all, int64_t steps,
          const std::function<training::Examples(int64_t step)>& batch,
          const std::function<double(int64_t step)>& rate);

inline constexpr size_t kShownSteps = 20;  // a loss that is shown is a mean over so many

// Name, share of wrong answers in percent, loss at the end, time of a step divided by that of `reference`.
std::vector<reports::TextCell> row_of(const Rival& rival, double wrong, const Rival& reference);
// The losses of all, step by step.
reports::Figure losses_of(const Rivals& all, const char* heading, const char* what_is_the_same);

// "12.34": of a share, in percent.
std::string percent(double share);

}  // namespace isonorm::papers
