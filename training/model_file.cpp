#include "training/model_file.h"

#include <filesystem>

#include "io/checkpoint.h"
#include "io/name_pattern.h"

namespace isonorm::training {
namespace {

bool is_number(const std::string& s) {
  return !s.empty() && s.size() < 10 && s.find_first_not_of("0123456789") == std::string::npos;
}

// One of several files, as its name says, holds a part of a model.
void check_whole(const std::string& path) {
  std::vector<std::string> stars;
  if (!io::matches("*-of-*.safetensors", std::filesystem::path(path).filename().string(), stars)) return;
  const std::string part = stars[0].substr(stars[0].rfind('-') + 1);
  check(!is_number(part) || !is_number(stars[1]) || std::stoul(stars[1]) == 1, path, ": this is shard ", part, " of ",
        stars[1], "; expected the whole model in one file, as safetensors' save_file writes it");
}

// A checkpoint says twice how its sub-layers are arranged: what it was trained with, and what its model is.
void check_one_arrangement(const Metadata& checkpoint, const Metadata& description) {
  const auto said = [](const Metadata& m, const std::string& key) {
    const auto at = m.find(key);
    return at == m.end() ? std::string(nn::kPreNorm.name) : at->second;
  };
  const std::string trained = said(checkpoint, text(kCheckpointValue, "residual")),
                    is = said(description, text(kOptionPrefix, "residual"));
  check(trained == is, "model file: it was trained with residual connections ", trained.substr(0, 80),
        ", and its model is one of ", is.substr(0, 80));
}

}  // namespace

OpenModelFile open_model_file(const std::string& path) {
  check_whole(path);
  const auto file = std::make_shared<const SafetensorsFile>(path);
  const bool trained = is_checkpoint(file->metadata());
  if (trained) check_checkpoint(*file);
  OpenModelFile opened;
  std::map<std::string, const io::TensorEntry*> places;
  for (const io::TensorEntry& e : file->entries()) {
    if (trained && !e.name.starts_with(kCheckpointWeights)) continue;
    const std::string name = e.name.substr(trained ? kCheckpointWeights.size() : 0);
    opened.state.outline.add(name, outline(e.shape, e.dtype));
    places[name] = &e;
    if (!e.foreign.empty()) opened.foreign[name] = e.foreign;
  }
  opened.state.read = [file, places = std::move(places)](const std::string& name) {
    return file->read(*places.at(name));
  };
  for (const auto& [key, value] : file->metadata()) {
    const std::string name = key.substr(trained && key.starts_with(kCheckpointValue) ? kCheckpointValue.size() : 0);
    if (name.starts_with(kOptionPrefix))
      opened.description.emplace(name, value);
    else if (!trained)
      opened.other.emplace(key, value);
  }
  if (trained) check_one_arrangement(file->metadata(), opened.description);
  return opened;
}

ModelFile load_model_file(const std::string& path) {
  OpenModelFile opened = open_model_file(path);
  ModelFile file{{}, std::move(opened.description), std::move(opened.other), std::move(opened.foreign)};
  for (const auto& [name, tensor] : opened.state.outline) file.state.add(name, opened.state.read(name));
  return file;
}

}  // namespace isonorm::training
