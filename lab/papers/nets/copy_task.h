// Internal: a copy task that a small Transformer learns in some hundred steps: for each token, predict the token before
// it. Its training records gradients and the stream.
#pragma once

#include <functional>

#include "lab/papers/nets/deep_net.h"

namespace isonorm::papers {

constexpr int64_t kCopyVocabulary = 16;  // log(16) = 2.77 is the loss of a uniform prediction

struct CopyTraining {
  nn::Arrangement connection;
  int64_t depth = 6;
  double lr = 1e-3;
  int64_t warmup = 0, steps = 240;
  uint64_t seed = 1;
  std::function<void()> before_step = {};  // may throw to end the training
};

// Values for each block, at the first or at the last step.
struct Inside {
  std::vector<double> gradients;  // gradient norm of the MLP's second weight
  std::vector<double> stream;     // mean square of the stream after the block
};

struct CopyResult {
  std::vector<double> losses;
  double last = 0;  // mean of the last tenth; NaN or large if the training diverged
  Inside begin, end;
};

// Trains a model of width 32 with two heads and learned positions, f32, with Adam (0.9, 0.98) on 16 new rows of 16
// tokens per step. The learning rate is constant after the warm-up. Weights and batches depend only on the seed.
CopyResult train_copy(const CopyTraining& t);

}  // namespace isonorm::papers
