#include "exchange/models/import_model.h"

#include "core/system/file.h"
#include "core/system/warning.h"
#include "exchange/models/described_model.h"
#include "io/safetensors.h"
#include "io/tokenizers/tokenizer.h"
#include "streams/stream.h"
#include "training/spec/data_spec.h"
#include "training/spec/preprocessor.h"

namespace isonorm::exchange {
namespace {

using training::ModelOptions;

constexpr int64_t kMostPreprocessor = int64_t{1} << 20;  // limit for the file's bytes

// The tokenizer.json of a folder, if it has one that this library reads.
std::string tokenizer_in(const std::string& folder) try {
  if (!file_exists(folder + "/tokenizer.json")) return "";
  return tokenizers::json_of(folder, training::kMostTokenizer);
} catch (const Error& e) {
  warn(text("without the tokenizer: ", e.what()));
  return "";
}

// Throws if the folder's preprocessor needs a step that is not supported. Warns if there is none.
std::string preprocessor_in(const std::string& folder, const training::ModelShape& shape) {
  const std::string file = folder + "/preprocessor_config.json";
  if (!file_exists(file)) {
    warn(text("without a pixel scale: there is no ", file));
    return "";
  }
  const Scope scope("preprocessor_config.json (a folder without it is imported without a pixel scale)");
  return training::Preprocessor::read(read_text(file, kMostPreprocessor), shape.image, shape.channels)
      .text(shape.image, shape.channels);
}

training::DataSpec spec_in(const hub::Folder& folder, const ModelOptions& options) {
  training::DataSpec spec;
  spec.tokenizer = tokenizer_in(folder.path);
  if (options.row().input != training::Input::images) return spec;
  spec.classes = hub::class_names(folder.config);
  spec.preprocessor = preprocessor_in(folder.path, options.shape());
  return spec;
}

}  // namespace

WrittenModel import_model(const std::string& path, const std::string& out, std::optional<NumberFormat> format) {
  const hub::Folder folder = hub::open_folder(path);
  const Scope scope(path);
  const hub::Port& port = hub::port_named(folder.config.word("model_type"));
  const ModelOptions options = options_of(port, folder.config);
  const LazyState state = io::in_format(imported(port, folder, options.description()), format);
  check_tensors(options, state.outline);
  const io::FileContent content = io::content_of(state);
  Metadata metadata = options.description();
  metadata.merge(spec_in(folder, options).entries());
  save_safetensors(out, content.entries, metadata, content.read);
  const char* form = name_of(options.stream().form);
  return {
      .sentence = text(options.row().noun, " of type ", port.type, ", ", form, ", ", state.outline.size(), " tensors"),
      .format = "isonorm",
      .model = options.row().name,
      .family = std::string(port.type),
      .form = form,
      .tensors = static_cast<size_t>(state.outline.size())};
}

}  // namespace isonorm::exchange
