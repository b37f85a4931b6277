#include "training/model_file.h"

#include <filesystem>

#include "core/printed.h"
#include "core/random.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "core/system/name_pattern.h"
#include "core/system/warning.h"
#include "io/checkpoint.h"
#include "nn/modes.h"
#include "training/steps/loop.h"

namespace isonorm::training {
namespace {

// Throws if the file's name says that it is one of several shards, with only a part of a model.
void check_whole(const std::string& path) {
  std::vector<std::string> stars;
  if (!names::matches("*-of-*.safetensors", std::filesystem::path(path).filename().string(), stars)) return;
  const std::string part = stars[0].substr(stars[0].rfind('-') + 1);
  uint32_t n = 0, count = 0;
  check(!read_number(part, n) || !read_number(stars[1], count) || count == 1, path, ": this is shard ", part, " of ",
        stars[1], "; expected the whole model in one file, as safetensors' save_file writes it");
}

}  // namespace

OpenModelFile open_model_file(const std::string& path) {
  check_whole(path);
  const auto file = std::make_shared<const SafetensorsFile>(path);
  const bool trained = is_checkpoint(file->metadata());
  if (trained) check_checkpoint(*file);
  OpenModelFile opened;
  opened.file = file;
  std::map<std::string, const io::TensorEntry*> places;
  for (const io::TensorEntry& e : file->entries()) {
    if (trained && !e.name.starts_with(kCheckpointWeights)) continue;
    const std::string name = e.name.substr(trained ? kCheckpointWeights.size() : 0);
    io::add_entry(opened.state, opened.foreign, name, e);
    places[name] = &e;
  }
  opened.state.read = [file, places = std::move(places)](const std::string& name) {
    const io::TensorEntry& entry = *places.at(name);
    return io::held(entry, file->read(entry));
  };
  opened.description = model_description(*file);
  for (const auto& [key, value] : file->metadata())
    if (!trained && !opened.description.contains(key)) opened.other.emplace(key, value);
  if (trained) opened.other = spec_entries(*file);
  return opened;
}

Metadata model_description(const SafetensorsFile& file) {
  const bool trained = is_checkpoint(file.metadata());
  Metadata description;
  for (const auto& [key, value] : file.metadata()) {
    const std::string name = key.substr(trained && key.starts_with(kCheckpointValue) ? kCheckpointValue.size() : 0);
    if (name.starts_with(kOptionPrefix)) description.emplace(name, value);
  }
  return description.contains(kModelKind) ? description : Metadata();  // else the entries are another program's
}

ModelFile load_model_file(const std::string& path) {
  OpenModelFile opened = open_model_file(path);
  opened.file->check_fits();
  ModelFile file{{}, std::move(opened.description), std::move(opened.other), std::move(opened.foreign)};
  for (const auto& [name, tensor] : opened.state.outline) file.state.add(name, opened.state.read(name));
  return file;
}

void save_model(const std::string& path, const nn::Module& model, ModelList models, const DataSpec& spec) {
  nn::check_whole(model, path);
  const bool known = ModelOptions::of(model, models).has_value();
  Metadata metadata = known ? describe(model, models) : Metadata();
  metadata.merge(spec.entries());
  save_safetensors(path, model.state_dict(), metadata);
}

std::unique_ptr<nn::Module> load_model(const std::string& path, ModelList models) {
  const ModelFile file = load_model_file(path);
  const Scope scope(path);
  check(!file.description.empty(), "load_model: the file does not say what model it holds (no entry '", kModelKind,
        "'); load it into a model of your own: model.load_state_dict(training::load_model_file(path).state)");
  const ModelOptions options(file.description, models);
  options.check_size(file.state);
  const DrawsFrom back_afterwards(default_generator());
  const nn::SkipInit skip;
  std::unique_ptr<nn::Module> model = options.make();
  if (!file.state.empty()) model->to(file.state.begin()->second.dtype());
  model->load_state_dict(file.state);
  model->eval();
  return model;
}

void check_finite(const std::string& path, const TensorMap& weights) {
  if (const std::string name = not_finite(weights); !name.empty())
    throw Diverged(text(printable(path), ": ", printable(name, 200), " holds NaN or infinity"));
}

void warn_of_averages(const SafetensorsFile& file, const std::string& path) {
  const Metadata& metadata = file.metadata();
  const auto ema = metadata.find(text(kCheckpointValue, "ema"));
  if (is_checkpoint(metadata) && ema != metadata.end() && ema->second != "0")
    warn(text(printable(path),
              ": these are the weights of the last step, not the averages that the test passes of isonorm "
              "train --ema ",
              ema->second, " used; isonorm train --ema-file FILE writes the averages"));
}

std::unique_ptr<nn::Module> load_finite_model(const std::string& path) {
  std::unique_ptr<nn::Module> model = load_model(path);
  check_finite(path, model->state_dict());
  return model;
}

}  // namespace isonorm::training
