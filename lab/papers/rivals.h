// Internal: models trained on the same batches in turns, to compare their losses and the time of their steps.
#pragma once

#include <memory>

#include "optim/adam.h"
#include "lab/papers/experiment.h"
#include "lab/papers/timing/turns.h"
#include "training/steps/step.h"

namespace isonorm::papers {

struct Rival {
  Rival(const char* name, const char* css, std::unique_ptr<nn::Module> model, Device device,
        const optim::AdamOptions& options, training::Objective loss = training::cross_entropy_of);

  const char *name, *css;
  std::unique_ptr<nn::Module> model;  // f32
  optim::Adam optimizer;
  training::Step step;
  TimedSteps steps = {};
};
using Rivals = std::vector<std::unique_ptr<Rival>>;

// Trains all models on the same batch in every step, each step starting with the next model. Random draws (noise,
// dropout) are the same for all.
void race(const ExperimentOptions& o, const Rivals& all, int64_t steps,
          const std::function<training::Examples(int64_t step)>& batch,
          const std::function<double(int64_t step)>& rate);

inline constexpr size_t kShownSteps = 20;  // losses are shown as means over this many steps

// Name, percentage of wrong answers, loss at the end, and step time divided by the reference's.
std::vector<reports::TextCell> row_of(const Rival& rival, double wrong, const Rival& reference);
// Every model's losses, step by step.
reports::Figure losses_of(const Rivals& all, const char* heading, const char* what_is_the_same);

// The fraction in percent, as "12.34".
std::string percent(double share);

}  // namespace isonorm::papers
