#include "tools/training_start.h"

#include <algorithm>
#include <filesystem>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "core/system/foreign_text.h"
#include "equivalence/verify/verify.h"
#include "io/sha256.h"
#include "streams/stream.h"
#include "training/records/training_result.h"

namespace isonorm::tools {

using namespace equivalence;

namespace {

constexpr const char* kEarlier = "earlier";
// Of these a manifest is silent where they are the default, and so were older ones, without a choice.
constexpr std::pair<const char*, const char*> kSilent[] = {{"connection", nn::kPreLn.name},
                                                           {"precision", name_of(nn::Precision::full)},
                                                           {"stream-precision", name_of(nn::Precision::full)},
                                                           {"kv-heads", "as heads"},
                                                           {"gain", "false"},
                                                           {"scaled-gains", "false"},
                                                           {"initialisation", name_of(nn::Initialisation::by_layer)},
                                                           {"schedule", name_of(optim::Decay::cosine)},
                                                           {"label-smoothing", "0"},
                                                           {"clip-gates", "0"},
                                                           {"dropout", "0"},
                                                           {"stochastic-depth", "0"},
                                                           {"layer-scale", "0"},
                                                           {"decay-matrices-only", "false"},
                                                           {"accumulate", "1"},
                                                           {"ema", "0"}};

// What the checkpoint says of an option. One from before there was a choice kept its activations as they were.
std::string said(const Metadata& values, const std::string& name) {
  if (const auto at = values.find(name); at != values.end()) return at->second;
  for (const auto& [option, value] : kSilent)
    if (name == option) return value;
  return name == "activations" ? text_at(values, "dtype") : "nothing";
}

// What may differ between the weights of --init and the model: coordinates, the dtypes that it computes in, whether
// gains are in their readers already, and what acts in training alone.
constexpr std::string_view kFreeOfInit[] = {
    "model.stream",       "model.storage", "model.precision", "model.stream_precision", "model.initialisation",
    "model.scaled_gains", "model.folded",  "model.dropout",   "model.stochastic_depth", "model.layer_scale"};

// The options of two models, whatever coordinates their streams are in.
void check_same_model(const training::ModelOptions& file, const training::ModelOptions& asked) {
  const streams::FormRow &theirs = row_of(file.stream().form), &ours = row_of(asked.stream().form);
  check(theirs.form == ours.form || (theirs.layer_norm_model() && ours.layer_norm_model()), "its stream is ",
        theirs.name, ", asked for is ", ours.name, ", which is another function");
  const Metadata other = file.description();
  for (const auto& [name, value] : asked.description()) {
    const auto at = other.find(name);
    const std::string theirs = at == other.end() ? "nothing" : at->second;
    const bool free = std::ranges::count(kFreeOfInit, name) > 0;
    check(free || theirs == value, "its ", name, " is ", printable(theirs, 80), ", asked for is ", value);
  }
}

// Gains and biases of `model` that a conversion has put into their readers: ones and zeros take their places.
void unfold(training::ModelFile& file, const nn::Module& model) {
  const training::ModelOptions options(file.description);
  if (!options.transformer().folded) return;
  const TensorMap there = options.make()->state_dict();
  for (const auto& [name, tensor] : model.state_dict())
    if (!there.find(name)) file.state.add(name, name.ends_with("bias") ? zeros_like(tensor) : ones_like(tensor));
}

}  // namespace

Metadata identity(const training::Manifest& manifest, const std::string& init) {
  Metadata m;
  for (const auto& [name, value] : manifest.options)
    if (name != "data" && name != "init" && name != "threads" && name != "device" && name != "any-order")
      m.emplace(name, value);
  m.emplace("data", "sha256:" + manifest.data_sha256);  // wherever it lies
  for (const auto& [option, value] : kSilent) m.emplace(option, value);
  if (!init.empty()) m.emplace("init", "sha256:" + io::sha256_of_files({init}));
  return m;
}

std::optional<NewestCheckpoint> checkpoint_to_go_on_from(const std::string& path) {
  if (path.empty()) return {};
  if (!std::filesystem::exists(path)) {
    const std::string previous = previous_checkpoint(path);
    std::error_code none;  // an empty one was left by a process that was killed while it asked whether it may write
    const auto bytes = std::filesystem::file_size(previous, none);
    check(none || bytes == 0, path, ": it is gone, but ", previous,
          " is there; rename that to go on from it, or remove it to begin anew");
    return {};
  }
  NewestCheckpoint newest = load_newest_checkpoint(path);
  newest.checkpoint.values = training::with_present_names(std::move(newest.checkpoint.values));
  return newest;
}

Metadata continued(const Checkpoint& checkpoint, const std::string& path, int64_t step, Metadata asked, bool extend) {
  std::string changed;
  std::vector<std::pair<std::string, std::string>> options(asked.begin(), asked.end());
  // What others follow from (the width of a head) is named first.
  for (const char* name : {"heads", "width", "model"})
    std::stable_partition(options.begin(), options.end(), [&](const auto& o) { return o.first == name; });
  for (const auto& [name, value] : options) {
    const std::string before = said(checkpoint.values, name);
    if (before == value) continue;
    const bool may = std::find(std::begin(training::kExtendable), std::end(training::kExtendable), name) !=
                     std::end(training::kExtendable);
    check(name != "data", path, ": was trained on other data: their checksum is ", printable(before, 80),
          ", that of --data ", value);
    check(name != "init", path, ": did not begin with the weights of --init, which are for a new checkpoint");
    check(may && extend, path, ": was trained with --", name, " ", printable(before, 80), ", asked for is ", value,
          may ? "; --extend goes on with that" : "");
    changed += text(" --", name, " ", printable(before, 80));
  }
  for (const char* kept : {"init", kEarlier})
    if (const auto at = checkpoint.values.find(kept); at != checkpoint.values.end()) asked.insert(*at);
  if (changed.empty()) return asked;
  std::string& earlier = asked[kEarlier];
  earlier += text(earlier.empty() ? "" : "; ", "to step ", step, " with", changed);
  return asked;
}

TensorMap initial_weights(const std::string& path, const nn::Module& model, DType dtype) {
  training::ModelFile file = training::load_model_file(path);
  if (!file.description.empty()) {
    const Scope scope(path);
    const streams::Form stored = training::stored_form(training::ModelOptions(file.description));
    if (row_of(stored).centres) {
      ModelConversion raw = convert_model(file, streams::Form::layer_norm);
      file.state = std::move(raw.conversion.exact), file.description = std::move(raw.description);
    }
    check_same_model(training::ModelOptions(file.description), training::ModelOptions(training::describe(model)));
    unfold(file, model);
  }
  TensorMap weights;
  for (const auto& [name, tensor] : file.state)
    weights.add(name, is_floating(tensor.dtype()) ? tensor.to(dtype) : tensor);
  return weights;
}

}  // namespace isonorm::tools
