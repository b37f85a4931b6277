// The test pass: what trained models predict on the examples that no training step shows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "distributed/group.h"
#include "nn/module.h"
#include "training/records/training_result.h"
#include "training/steps/objective.h"

namespace isonorm::training {

class Source;

struct TestScore {
  double loss = 0;        // mean cross-entropy
  int64_t right = 0;      // predictions that are the target
  int64_t differing = 0;  // predictions that are not those of the first model
};

struct TestPass {
  int64_t predictions = 0;        // of one model: images or tokens; 0 if the source has nothing to test on
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

// Tests a model on one batch, on the model's device, after `step` steps: in evaluation mode, without a graph. Every module keeps its
// own mode, also if something throws.
//
// The loss is cross_entropy(model(inputs), targets). If targets are i64, `right` and `predictions` count the most likely classes and
// the targets that are not below 0; else predictions is 0. Throws if targets are floating and no probabilities of at least two
// classes: the second form takes the loss of a regression.
Evaluation evaluate(nn::Module& model, const Examples& batch, int step);

// The same with another loss. Right predictions are counted, with a second forward pass, if targets are i64, the batch has no other
// tensors (Examples::more) and model(inputs) has the targets' shape and a last dimension of classes; else predictions is 0.
Evaluation evaluate(nn::Module& model, const Examples& batch, int step, const Objective& loss);

}  // namespace isonorm::training
