// The test pass: what trained models predict on the examples that no training step shows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "distributed/group.h"
#include "nn/module.h"
#include "training/records/training_result.h"
#include "training/source.h"

namespace isonorm::training {

struct TestScore {
  double loss = 0;        // mean cross-entropy
  int64_t right = 0;      // predictions that are the target
  int64_t differing = 0;  // predictions that are not those of the first model
};

struct TestPass {
  int64_t predictions = 0;        // of one model: images, or characters; 0 where the source has nothing to test on
  std::vector<TestScore> scores;  // one a model, in their order

  double accuracy(size_t model) const {
    return static_cast<double>(scores[model].right) / static_cast<double>(predictions);
  }
};

// Runs the models in evaluation mode, without a graph, over source.test_rows: the prediction is the most likely class
// (argmax of the logits, along the last dimension). `progress`, where given, is told how many of how many batches are
// done, and returns false to stop: then nothing is returned. The ranks of a group, which hold the same models, take the batches in
// turn; all get the scores of the whole pass, or nothing where one was stopped.
std::optional<TestPass> test_pass(const Source& source, std::span<nn::Module* const> models,
                                  const std::function<bool(int batch, int batches)>& progress = {},
                                  distributed::Group* group = nullptr);

// The test of one model on one batch, on the model's device, after `step` steps: mean cross-entropy and right predictions at the
// targets that are not below 0. Leaves the model in its mode, evaluation or training. Throws where targets are not i64.
Evaluation evaluate(nn::Module& model, const Examples& batch, int step);

}  // namespace isonorm::training
