#include "equivalence/services/initial_weights.h"

#include <algorithm>
#include <numeric>

#include "autograd/ops/create.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/system/foreign_text.h"
#include "equivalence/verify/verify.h"
#include "nn/modes.h"
#include "streams/stream.h"
#include "training/fields.h"
#include "training/model_file.h"

namespace isonorm::services {

using namespace equivalence;

namespace {

// Options that may differ between the file and the model, in addition to options of training alone: coordinates,
// and whether the readers have the gains already.
constexpr std::string_view kFreeOfInit[] = {"model.form", "model.storage", "model.centre_readers", "model.folded",
                                            "model.layer_scale"};

// Throws if two models differ in an option that does not only choose coordinates.
void check_same_model(const training::ModelOptions& file, const training::ModelOptions& asked) {
  const streams::FormRow &theirs = row_of(file.stream().form), &ours = row_of(asked.stream().form);
  check(file.stream().form == asked.stream().form || (theirs.layer_norm_model() && ours.layer_norm_model()),
        "its stream is ", theirs.name, ", not ", ours.name, ": a different function");
  const Metadata other = file.description();
  for (const auto& [name, value] : asked.description()) {
    const auto at = other.find(name);
    const std::string theirs = at == other.end() ? "nothing" : at->second;
    const bool free = std::ranges::count(kFreeOfInit, name) > 0 || training::is_training_only(name);
    check(free || theirs == value, "its ", name, " is ", printable(theirs, 80), ", not ", value);
  }
}

// Adds ones and zeros for gains and biases of `model` that a conversion has multiplied into their readers.
void unfold(training::ModelFile& file, const nn::Module& model) {
  const training::ModelOptions options(file.description);
  if (!options.transformer().folded) return;
  const nn::SkipInit skip;  // only names are needed
  const TensorMap there = options.make()->state_dict();
  for (const auto& [name, tensor] : model.state_dict())
    if (!there.find(name)) file.state.add(name, name.ends_with("bias") ? zeros_like(tensor) : ones_like(tensor));
}

// The rows of a tensor that has one for each token or class: row i becomes row from[i]. If it is -1, it becomes the
// mean over the rows: a model that knows nothing of a token gives it less than its share of probability (Hewitt,
// Initializing New Word Embeddings for Pretrained Language Models, 2021).
Tensor with_rows(const Tensor& x, const std::vector<int64_t>& from) {
  const Tensor average = mean(x, {0}, true);
  std::vector<Tensor> rows;
  for (const int64_t i : from) rows.push_back(i < 0 ? average : narrow(x, 0, i, 1));
  return cat(rows);
}

// Appends a row per new token to each tensor that has `before` rows while its counterpart in `model` has `now` rows.
void add_rows(TensorMap& state, const TensorMap& model, int64_t before, int64_t now) {
  std::vector<int64_t> from(static_cast<size_t>(now), -1);
  std::iota(from.begin(), from.begin() + before, 0);
  TensorMap grown;
  for (const auto& [name, tensor] : state) {
    const Tensor* own = model.find(name);
    const bool rows =
        own && tensor.rank() > 0 && own->rank() == tensor.rank() && tensor.size(0) == before && own->size(0) == now;
    grown.add(name, rows ? with_rows(tensor, from) : tensor);
  }
  state = std::move(grown);
}

// Sorts the head's rows by other class names.
void match_classes(TensorMap& state, const std::vector<std::string>& before, const std::vector<std::string>& now) {
  std::vector<int64_t> from;
  for (const std::string& name : now) {
    const auto at = std::ranges::find(before, name);
    from.push_back(at == before.end() ? -1 : at - before.begin());
  }
  TensorMap matched;
  for (const auto& [name, tensor] : state) {
    const bool rows = name.starts_with("head.") && tensor.rank() > 0 && tensor.size(0) == std::ssize(before);
    matched.add(name, rows ? with_rows(tensor, from) : tensor);
  }
  state = std::move(matched);
}

}  // namespace

TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype, const training::DataSpec& spec,
                          bool more_tokens) {
  training::ModelFile file = training::load_model_file(path);
  if (!file.description.empty()) {
    const Scope scope(path);
    const streams::Form stored = training::stored_form(training::ModelOptions(file.description));
    if (row_of(stored).centres()) {
      ModelConversion raw = convert_model(file, streams::Form::layer_norm);
      file.state = std::move(raw.conversion.exact), file.description = std::move(raw.description);
    }
    training::ModelOptions theirs(file.description);
    const training::ModelOptions ours(training::describe(model));
    const int64_t before = theirs.number("vocab"), now = ours.number("vocab");
    if (more_tokens) theirs.fit({{"vocab", now}});
    const std::vector<std::string> classes = training::DataSpec::of(file.other).classes;
    const bool other_classes = !classes.empty() && !spec.classes.empty() && classes != spec.classes;
    if (other_classes) theirs.set({"classes", std::ssize(spec.classes)});
    check_same_model(theirs, ours);
    unfold(file, model);
    if (before != theirs.number("vocab")) add_rows(file.state, model.state_dict(), before, now);
    if (other_classes) match_classes(file.state, classes, spec.classes);
  }
  TensorMap weights;
  for (const auto& [name, tensor] : file.state)
    weights.add(name, is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor);
  return weights;
}

}  // namespace isonorm::services
