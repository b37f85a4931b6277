// Internal: A task that a small Transformer learns in some hundred steps, and a training of it that is looked at from
// inside: every token is to say which one came before it.
#pragma once

#include <functional>

#include "papers/nets/deep_net.h"

namespace isonorm::papers {

constexpr int64_t kCopyVocabulary = 16;  // log(16) = 2.77 is the loss of one who knows nothing

struct CopyTraining {
  nn::Arrangement connection;
  int64_t depth = 6;
  double lr = 1e-3;
  int64_t warmup = 0, steps = 240;
  uint64_t seed = 1;
  std::function<void()> before_step = {};  // may throw, which ends the training
};

// Of each block, at the first step or at the last.
struct Inside {
  std::vector<double> gradients;  // norm of the MLP's second weight's
  std::vector<double> stream;     // mean square of the numbers behind it
};

struct CopyResult {
  std::vector<double> losses;
  double last = 0;  // mean of the last tenth; of a training that diverged NaN or large
  Inside begin, end;
};

// Trains a model of width 32 with two heads and learned positions by Adam (0.9, 0.98), f32, on 16 new rows of 16 tokens
// a step; the rate is constant behind the warm-up. Weights and batches follow from the seed alone.
CopyResult train_copy(const CopyTraining& t);

}  // namespace isonorm::papers
