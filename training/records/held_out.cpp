#include "training/records/held_out.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "core/formulas/round_up.h"
#include "nn/modes.h"
#include "training/source.h"

namespace isonorm::training {
namespace {

constexpr int64_t kTestImages = 250, kTestTokens = 4000;  // per forward pass: enough to keep the cores busy

// Sums the counts over all ranks. Returns false if a rank was stopped.
bool sum_of_ranks(distributed::Group& group, TestPass& pass, bool go_on) {
  std::vector<double> own = {go_on ? 0. : 1., static_cast<double>(pass.predictions)};
  for (const TestScore& s : pass.scores)
    own.insert(own.end(), {s.loss, static_cast<double>(s.right), static_cast<double>(s.differing)});
  const Tensor all = from_vector(own, {std::ssize(own)});
  group.all_reduce(all);
  const double* sum = all.data<double>();
  pass.predictions = static_cast<int64_t>(sum[1]);
  for (size_t m = 0; m < pass.scores.size(); ++m)
    pass.scores[m] = {sum[2 + 3 * m], static_cast<int64_t>(sum[3 + 3 * m]), static_cast<int64_t>(sum[4 + 3 * m])};
  return sum[0] == 0;
}

// Counts the targets that are not below 0, and the correct predictions for them. Returns all predictions.
std::vector<int64_t> count_right(const Tensor& logits, const std::vector<int64_t>& targets, Evaluation& e) {
  const std::vector<int64_t> predicted = argmax(logits, -1).to_vector<int64_t>();
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] >= 0) ++e.predictions, e.right += predicted[i] == targets[i];
  return predicted;
}

void check_probabilities(const Tensor& targets) {
  const Tensor sums = targets.rank() > 0 ? sum(targets.to(DType::f64), {-1}) : Tensor();
  const double bound = targets.rank() > 0 ? static_cast<double>(targets.size(-1)) * epsilon(targets.dtype()) : 0;
  check(targets.rank() > 0 && targets.size(-1) > 1 && targets.numel() > 0 && amin(targets).item() >= 0 &&
            amax(abs(sums - 1)).item() <= bound,
        "evaluate: targets ", targets.dtype(), ' ', targets.shape(),
        " are no probabilities of classes; give the loss, evaluate(model, batch, step, loss)");
}

bool has_classes_of(const Tensor& logits, const Tensor& targets) {
  Dims shape = targets.shape();
  if (logits.rank() == 0) return false;
  shape.push_back(logits.size(-1));
  return is_floating(logits.dtype()) && logits.shape() == shape;
}

}  // namespace

std::optional<TestPass> test_pass(const Source& source, std::span<nn::Module* const> models,
                                  const std::function<bool(int, int)>& progress, distributed::Group* group) {
  const NoGrad no_grad;
  const nn::EvaluationMode evaluation;
  TestPass pass{.scores = std::vector<TestScore>(models.size())};
  const int64_t examples = source.test_count();
  const int64_t rows = source.context() > 0 ? std::max<int64_t>(1, kTestTokens / source.context()) : kTestImages;
  const int batches = static_cast<int>(ceil_div(examples, rows));
  bool go_on = true;
  const int ranks = group ? group->size() : 1;
  for (int b = ranks > 1 ? group->rank() : 0; b < batches && go_on; b += ranks) {
    const Examples batch = source.test_rows(b * rows, std::min(rows, examples - b * rows));
    const std::vector<int64_t> targets = batch.targets.to_vector<int64_t>();
    std::vector<int64_t> first, predicted;
    for (size_t m = 0; m < models.size(); ++m) {
      const std::vector<Tensor> weights = models[m]->parameters();
      const Examples here = weights.empty() ? batch : batch.on(weights.front().device());
      const Tensor logits = (*models[m])(here.inputs);
      Evaluation e{.loss = cross_entropy(logits, here.targets).item()};
      predicted = count_right(logits, targets, e);
      if (m == 0) first = predicted, pass.predictions += e.predictions;
      TestScore& score = pass.scores[m];
      score.loss += e.loss * static_cast<double>(e.predictions);
      score.right += e.right;
      for (size_t i = 0; i < targets.size(); ++i) score.differing += targets[i] >= 0 && predicted[i] != first[i];
    }
    go_on = !progress || progress(b + 1, batches);
  }
  if (ranks > 1) go_on = sum_of_ranks(*group, pass, go_on);
  if (!go_on) return std::nullopt;
  for (TestScore& score : pass.scores)
    if (pass.predictions > 0) score.loss /= static_cast<double>(pass.predictions);
  return pass;
}

Evaluation evaluate(nn::Module& model, const Examples& batch, int step) {
  const NoGrad no_grad;
  const nn::EvaluationMode evaluation;
  const bool ids = batch.targets.dtype() == DType::i64;
  if (!ids) check_probabilities(batch.targets);
  const Tensor logits = model(batch.inputs);
  Evaluation e{.step = step, .loss = cross_entropy(logits, batch.targets).item()};
  if (ids) count_right(logits, batch.targets.to_vector<int64_t>(), e);
  return e;
}

Evaluation evaluate(nn::Module& model, const Examples& batch, int step, const Objective& loss) {
  const NoGrad no_grad;
  const nn::EvaluationMode evaluation;
  Evaluation e{.step = step, .loss = loss(model, batch).item()};
  if (batch.targets.dtype() != DType::i64 || !batch.more.empty()) return e;
  const Tensor logits = model(batch.inputs);
  if (has_classes_of(logits, batch.targets)) count_right(logits, batch.targets.to_vector<int64_t>(), e);
  return e;
}

}  // namespace isonorm::training
