// The test pass: predictions of trained models on held-out examples.
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
  int64_t right = 0;      // number of correct predictions
  int64_t differing = 0;  // number of predictions that differ from the first model's
};

struct TestPass {
  int64_t predictions = 0;        // per model: images or tokens; 0: the source has no test examples
  std::vector<TestScore> scores;  // one per model

  double accuracy(size_t model) const {
    return static_cast<double>(scores[model].right) / static_cast<double>(predictions);
  }
};

// Runs the models in evaluation mode, without a graph, over source.test_rows. The prediction is the most likely class
// (argmax of the logits along the last dimension). If `progress` is set, progress(batch, batches) is called for every
// batch and returns false to stop; then the result is empty. The ranks of a group must hold the same models. They
// compute the batches in turn, and all ranks return the scores of the whole pass, or nothing if one rank was stopped.
std::optional<TestPass> test_pass(const Source& source, std::span<nn::Module* const> models,
                                  const std::function<bool(int batch, int batches)>& progress = {},
                                  distributed::Group* group = nullptr);

// Evaluates a model on one batch, on the model's device, after `step` steps: in evaluation mode, without a graph.
// Afterwards every module has its former mode, even if evaluation throws.
//
// The loss is cross_entropy(model(inputs), targets). If targets are i64, Evaluation::predictions is the number of
// targets that are not negative, and Evaluation::right is the number of those that the model predicts correctly.
// Otherwise predictions is 0. Throws if targets are floating but not probabilities of at least two classes: for
// regression, pass a loss (below).
Evaluation evaluate(nn::Module& model, const Examples& batch, int step);

// Evaluates a model like the overload above, with another loss. Correct predictions are counted, in a second forward
// pass, if targets are i64, the batch has no other tensors (Examples::more), and model(inputs) has the targets' shape
// with an additional last dimension of classes; otherwise predictions is 0.
Evaluation evaluate(nn::Module& model, const Examples& batch, int step, const Objective& loss);

}  // namespace isonorm::training
