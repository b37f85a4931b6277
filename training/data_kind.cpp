#include "training/data_kind.h"

#include <algorithm>
#include <filesystem>

#include "core/system/file.h"
#include "io/data/image_sets.h"
#include "io/data/pairs.h"

namespace isonorm::training {

std::optional<Input> kind_of_data(const std::string& data) {
  if (data.empty()) return {};
  const std::vector<std::string> pairs = data::Pairs::files(data);
  if (file_exists(pairs[0]) && file_exists(pairs[1])) return Input::pairs;
  if (data::holds_images(data)) return Input::images;
  if (file_exists(data) && !std::filesystem::is_directory(data) && !data::is_picture(data)) return Input::text;
  return {};
}

const ModelRow* model_for(const std::string& data) {
  const std::optional<Input> kind = kind_of_data(data);
  const auto reads = [&](const ModelRow* row) { return row->input == kind; };
  return kind ? *std::ranges::find_if(kModels, reads) : nullptr;
}

const char* data_noun(Input input) {
  return input == Input::images ? "a folder of images" : input == Input::pairs ? "a folder of pairs" : "a text file";
}

}  // namespace isonorm::training
