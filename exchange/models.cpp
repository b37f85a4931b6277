#include "exchange/models.h"

#include <algorithm>

#include "autograd/ops/create.h"
#include "core/error.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "core/system/warning.h"
#include "core/view.h"
#include "exchange/hub/gguf.h"
#include "exchange/onnx/model.h"
#include "io/safetensors.h"
#include "io/tokenizers/tokenizer.h"
#include "nn/init.h"
#include "streams/stream.h"
#include "training/model_file.h"
#include "training/spec/data_spec.h"
#include "training/spec/preprocessor.h"

namespace isonorm::exchange {
namespace {

using training::ModelOptions;

constexpr int64_t kMostPreprocessor = int64_t{1} << 20;  // limit for the file's bytes

// The model of a folder with this config.json. Throws, naming the key, if our model cannot have the value.
ModelOptions options_of(const hub::Port& port, const hub::Config& config) {
  const auto row = std::ranges::find(training::kModels, port.model, &training::ModelRow::name);
  ModelOptions options(**row);
  for (const auto& [option, value, key] : hub::port_options(port, config)) {
    const training::Option named = options.options(option).at(0);
    check(named.set(value), "config.json: \"", key, "\" is ", Shown{value}, ", expected ", named.expected);
  }
  return options.complete();
}

// Names and shapes of the model's tensors. All blocks of a stack are equal, so only a model with one block is made.
TensorMap outline_of(const ModelOptions& options) {
  const nn::SkipInit skip;  // only names and shapes are needed
  ModelOptions one = options;
  const bool stacked = &options.row() != &training::kTranslator;  // it has two stacks
  if (stacked) one.transformer().depth = 1;
  const std::string first = "blocks.0.";
  TensorMap all;
  for (const auto& [name, tensor] : one.make()->state_dict()) {
    const bool in_block = stacked && name.starts_with(first);
    for (int64_t block = 0; block < (in_block ? options.transformer().depth : 1); ++block)
      all.add(in_block ? text("blocks.", block, '.', name.substr(first.size())) : name,
              outline(tensor.shape(), DType::f32));
  }
  return all;
}

// Throws, naming the tensor, if one of the model is missing or has another shape, or if one is not the model's.
void check_tensors(const ModelOptions& options, const TensorMap& outline) {
  options.check_size(outline);
  const TensorMap expected = outline_of(options);
  for (const auto& [name, tensor] : outline) {
    const Tensor* there = expected.find(name);
    check(there != nullptr, "tensor '", name, "' is none of the model's");
    check(tensor.shape() == there->shape(), "tensor '", name, "' has shape ", tensor.shape(), ", the model's has ",
          there->shape());
  }
  for (const auto& [name, _] : expected)
    check(outline.find(name) != nullptr, "there is no tensor '", name, "', which the model has");
}

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

namespace {

// True for options that a folder does not describe.
bool not_of_folder(std::string_view option) {
  return training::is_training_only(option) || option == "model.storage" || option == "model.centre_readers";
}

// Raw weights of any form of Pre-LN are the weights of the Pre-LN model.
ModelOptions in_stored_form(ModelOptions o) {
  if (row_of(training::stored_form(o)).raw()) o.stream() = {};
  return o;
}

bool is_zero(const LazyState& state, const std::string& name) {
  const std::vector<double> values = state.read(name).to(DType::f64).to_vector<double>();
  return std::ranges::all_of(values, [](double x) { return x == 0; });
}

// Stored weights of rms_norm are the weights of a model with RMSNorm by definition. A head's bias of zeros is dropped:
// older versions of isonorm import added one to every untied head.
ModelOptions as_published(ModelOptions o, const LazyState& state) {
  if (const streams::Form form = streams::uncentred(o.stream().form); form != o.stream().form)
    o.stream() = {.form = form};
  if (state.outline.find("head.bias") && o.has("head_bias") && is_zero(state, "head.bias")) o.set({"head_bias", false});
  return o;
}

// True if a model with `theirs`' value of the option `key` can compute the function of `ours` once the parameters that
// `ours` lacks are set to 1 (gains) or 0 (biases, positions). Also true if `ours` does not use the option.
bool contains_ours(const std::string& key, const Metadata& ours, const Metadata& theirs) {
  const auto is = [](const Metadata& model, const char* option, const char* value) {
    const auto at = model.find(text(training::kOptionPrefix, option));
    return at != model.end() && at->second == value;
  };
  const std::string option = key.substr(training::kOptionPrefix.size());
  if (option == "affine" || option == "bias" || option == "head_bias" || option == "cls_position")
    return is(theirs, option.c_str(), "true");
  if (option == "norm_bias") return is(theirs, "norm_bias", "true") || is(ours, "affine", "false");
  if (option == "qkv_bias") return is(theirs, "qkv_bias", "true") || is(theirs, "bias", "true");
  return option == "positions" && is(ours, option.c_str(), "none") && is(theirs, option.c_str(), "learned");
}

// The weights of the model `wide`, for which contains_ours() holds: `ours`, and neutral values for the parameters that
// ours lacks. A longer position table starts with the additional rows.
LazyState as_wider(const LazyState& ours, const ModelOptions& wide) {
  LazyState result{{}, {}};
  result.half = ours.half;
  const DType dtype = ours.outline.begin()->second.dtype();
  for (const auto& [name, tensor] : outline_of(wide)) {
    const Tensor* there = ours.outline.find(name);
    result.outline.add(name, outline(tensor.shape(), there ? there->dtype() : dtype));
  }
  result.read = [ours, all = result.outline](const std::string& name) {
    const Tensor& like = all.at(name);
    const Tensor* there = ours.outline.find(name);
    if (!there) {
      const bool gain = name.find("norm") != name.npos && name.ends_with(".weight");
      return gain ? ones(like.shape(), {like.dtype()}) : zeros(like.shape(), {like.dtype()});
    }
    const int64_t rows = like.size(0) - there->size(0);
    if (rows == 0) return ours.read(name);
    Tensor longer = zeros(like.shape(), {like.dtype()});
    copy_into(detached::narrow(longer, 0, rows, there->size(0)), ours.read(name));
    return longer;
  };
  return result;
}

struct Fitting {
  const hub::Port& port;
  json config;         // config.json
  ModelOptions model;  // the options in config.json; if one differs from ours, contains_ours() holds for it
};

// Finds the first port that has exactly this model, or else the first that contains it. A `family` limits the search.
// Keeps `base` as config.json if it describes the same model. Throws if no port fits, and names an option in which each
// differs.
Fitting fitting(std::span<const hub::Port> ports, const char* of, const std::string& in, const std::string& family,
                const json& base, const ModelOptions& options) {
  const Metadata ours = options.description();
  std::string why;
  // The options with a relevant difference; empty if there are none.
  const auto difference = [&](const ModelOptions& there, bool wider) -> std::string {
    const Metadata theirs = there.description();
    for (const auto& [key, value] : ours)
      if (!not_of_folder(key) && theirs.at(key) != value && !(wider && contains_ours(key, ours, theirs)))
        return text(key.substr(training::kOptionPrefix.size()), " is ", value, ", not ", theirs.at(key));
    return "";
  };
  const auto said = [](const hub::Port& p, const json& config) { return options_of(p, hub::Config(dump(config))); };
  for (const bool wider : {false, true}) {
    why.clear();
    for (const hub::Port& p : ports) {
      if ((!family.empty() && p.type != family) || p.model != options.row().name) continue;
      std::string differs;
      try {
        json config = base;
        if (!base.contains("model_type") || !difference(said(p, config), wider).empty())
          config = exported_config(p, base, ours);
        const ModelOptions there = said(p, config);
        differs = difference(there, wider);
        if (differs.empty()) return {p, config, there};
      } catch (const Error& e) {
        differs = e.what();
      }
      why += text(why.empty() ? "" : "; ", p.type, ": ", differs);
    }
  }
  const Scope scope(in);
  check(false, "no family of ", of, " has this model: ",
        !why.empty()     ? why
        : family.empty() ? text("none is of kind ", options.row().name)
                         : text("none is of type ", family));
  return {ports.front(), base, options};
}

// The options of a file that has all tensors of its model, in the form of its tensors.
ModelOptions options_in(const std::string& path, const training::OpenModelFile& file) {
  const Scope scope(path);
  const ModelOptions said(file.description);
  ModelOptions options = in_stored_form(said);
  check(said.transformer().final_norm || (said.stream().form == options.stream().form && !said.stream().centre_readers),
        "without a last norm the head reads the mean of the stream, which ", name_of(said.stream().form),
        said.stream().centre_readers ? " with centred readers" : "",
        " takes off: it is not the Pre-LN model of its weights");
  for (const auto& [name, tensor] : file.state.outline)
    check(is_floating(tensor.dtype()) && !file.foreign.contains(name), "tensor '", name,
          "' is not of f64, f32, bf16 or f16");
  check_tensors(options, file.state.outline);
  return options;
}

training::DataSpec spec_of(const std::string& path, const training::OpenModelFile& file) {
  const Scope scope(path);
  return training::spec_of(*file.file);
}

// The tokenizer in a model file; empty if it has none.
std::string tokenizer_of(const training::OpenModelFile& file) {
  const auto own = file.other.find(training::kTokenizer);
  return own != file.other.end() ? own->second : "";
}

// Null if the file has no tokenizer, or llama.cpp has none like it.
json own_gguf_tokenizer(const training::OpenModelFile& file, int64_t vocab) try {
  const std::string own = tokenizer_of(file);
  return own.empty() ? json() : hub::gguf_tokenizer(tokenizers::read_tokenizer_json(own), vocab);
} catch (const Error& e) {
  warn(text("without the tokenizer: ", e.what()));
  return {};
}

// Sets "eos_token_id": the ids at which transformers' generate() stops. Without this entry the config class of
// transformers uses its own default: 2 for LLaMA.
void add_text_ends(json& config, const std::string& tokenizer) {
  std::vector<int64_t> ends;
  if (!tokenizer.empty()) ends = tokenizers::Tokenizer::of_json(tokenizer).end_tokens();
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = ends.empty() ? json() : ends.size() == 1 ? json(ends[0]) : json(ends);
}

}  // namespace

WrittenModel export_folder(const std::string& in, const std::string& out, const FamilyOptions& o, int64_t shard) {
  hub::check_new_folder(out);
  const training::OpenModelFile file = training::open_model_file(in);
  const ModelOptions options = as_published(options_in(in, file), file.state);
  const std::string tokenizer = o.like.empty() ? tokenizer_of(file) : "";
  json base = json::object();
  std::string family = o.family;
  if (!o.like.empty()) {
    const hub::Folder like = hub::open_folder(o.like);
    base = like.config.values(), family = like.config.word("model_type");
    for (const char* other : {"isonorm", "auto_map"}) base.erase(other);  // entries for loading `like` in other ways
  } else {
    base["dtype"] = "float32";
    if (options.row().input == training::Input::text) add_text_ends(base, tokenizer);
  }
  const training::DataSpec spec = spec_of(in, file);
  if (!spec.classes.empty() && std::ssize(spec.classes) == options.number("classes"))
    hub::set_class_names(base, spec.classes);
  const auto [port, config, model] = fitting(hub::ports(), "folders", in, family, base, options);
  const Scope scope(in);
  const LazyState state = io::in_format(exported(port, as_wider(file.state, model), model.description()), o.format);
  hub::FolderContent content{io::content_of(state), config, {{"format", "pt"}}, o.like};
  if (!tokenizer.empty()) content.texts.emplace("tokenizer.json", tokenizer);
  if (!spec.preprocessor.empty())
    content.texts.emplace("preprocessor_config.json", dump(parsed(spec.preprocessor), 2) + '\n');
  hub::write_folder(out, content, shard);
  training::warn_of_averages(*file.file, in);
  return {.sentence = text(port.architecture, ", ", state.outline.size(), " tensors"),
          .format = "folder",
          .model = model.row().name,
          .family = std::string(port.architecture),
          .form = name_of(model.stream().form),
          .tensors = static_cast<size_t>(state.outline.size())};
}

WrittenModel export_gguf(const std::string& in, const std::string& out, const FamilyOptions& o) {
  const training::OpenModelFile file = training::open_model_file(in);
  const ModelOptions options = as_published(options_in(in, file), file.state);
  const json tokenizer = o.like.empty() ? own_gguf_tokenizer(file, options.number("vocab"))
                                        : hub::gguf_tokenizer(o.like, options.number("vocab"));
  const auto [port, config, model] = fitting(hub::gguf_ports(), "GGUF files", in, o.family, json::object(), options);
  const Scope scope(in);
  const Metadata description = model.description();
  const LazyState state = exported(port, as_wider(file.state, model), description);
  hub::write_gguf(out, port, config, description, state, o.format, tokenizer);
  training::warn_of_averages(*file.file, in);
  return {.sentence = text(port.type, ", ", state.outline.size(), " tensors"),
          .format = "gguf",
          .model = model.row().name,
          .family = std::string(port.type),
          .form = name_of(model.stream().form),
          .tensors = static_cast<size_t>(state.outline.size())};
}

WrittenModel export_onnx(const std::string& in, const std::string& out, std::optional<DType> dtype,
                         std::optional<int64_t> opset) {
  const training::OpenModelFile file = training::open_model_file(in);
  const ModelOptions options = options_in(in, file);
  const Scope scope(in);
  const bool f64 =
      std::ranges::all_of(file.state.outline, [](const auto& e) { return e.second.dtype() == DType::f64; });
  if (!dtype) dtype = f64 ? DType::f64 : DType::f32;
  if (!opset) opset = onnx::kOpsets[0];
  const training::DataSpec spec = training::spec_of(*file.file);
  const training::DataSpec of_images{.classes = spec.classes, .preprocessor = spec.preprocessor};
  onnx::save_model(out, file.state, options, of_images.entries(), *dtype, *opset);
  training::warn_of_averages(*file.file, in);
  const char* form = name_of(training::stored_form(options));
  return {.sentence = text(options.row().noun, ", ", form, ", ", *dtype, ", opset ", *opset),
          .format = "onnx",
          .model = options.row().name,
          .family = "",
          .form = form,
          .tensors = static_cast<size_t>(file.state.outline.size()),
          .opset = opset};
}

}  // namespace isonorm::exchange
