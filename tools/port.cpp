// isonorm import FOLDER OUT and isonorm export IN OUT: converts a published model to a checkpoint of ours, and back, or
// to an ONNX or GGUF file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "autograd/ops/create.h"
#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "core/system/terminal.h"
#include "core/view.h"
#include "exchange/hub/gguf.h"
#include "nn/modes.h"
#include "exchange/onnx/model.h"
#include "streams/stream.h"
#include "io/tokenizers/tokenizer.h"
#include "equivalence/services/model_data.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/model_file.h"
#include "training/spec/preprocessor.h"

namespace isonorm::tools {
namespace {

using training::ModelOptions;

constexpr int64_t kMostPreprocessor = int64_t{1} << 20;  // limit for the file's bytes

// True for options that a folder does not describe.
bool not_of_folder(std::string_view option) {
  return training::is_training_only(option) || option == "model.storage" || option == "model.centre_readers";
}

// The options of a folder's model. Throws, naming the key of config.json, if a value is not valid for ours.
ModelOptions options_of(const hub::Port& port, const hub::Config& config) {
  const auto row = std::ranges::find(training::kModels, port.model, &training::ModelRow::name);
  ModelOptions options(**row);
  for (const auto& [option, value, key] : hub::port_options(port, config)) {
    const training::Option named = options.options(option).at(0);
    check(named.set(value), "config.json: \"", key, "\" is ", Shown{value}, ", expected ", named.expected);
  }
  return options.complete();
}

// Names and shapes of the model's tensors. All blocks are equal, so only a model with one block is made.
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

// Throws if a tensor of the model is missing, has another shape, or is not the model's.
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

struct PortPaths {
  std::string in, out, dtype, family, like, json;
  std::optional<int64_t> shard, opset;
  const CLI::App* command = nullptr;
};

struct Ported {
  std::string sentence, format, model, family, form;
  size_t tensors;
  std::string file = {};
  std::optional<int64_t> opset = {};
};

reports::Fields<Ported> ported_fields() {
  return reports::Fields<Ported>()
      .add("file", &Ported::file, "the file or folder that was written")
      .add("format", &Ported::format, "`isonorm`, `folder` (for transformers), `onnx` or `gguf`")
      .add("model", &Ported::model, "`gpt`, `vit`, `translator`")
      .add("family", &Ported::family, "type of the published model; of a folder its class; of an ONNX file empty")
      .add("form", &Ported::form, "form of the residual stream of the weights that were written")
      .add("tensors", &Ported::tensors, "number of tensors")
      .add("opset", &Ported::opset, "of an ONNX file; else null")
      .add("sentence", &Ported::sentence, "the line that is printed");
}

const reports::Schema<Ported>& import_schema() {
  static const reports::Schema<Ported> schema{"import", "The file that `isonorm import` wrote.", ported_fields()};
  return schema;
}

const reports::Schema<Ported>& export_schema() {
  static const reports::Schema<Ported> schema{"export", "The file or folder that `isonorm export` wrote.",
                                              ported_fields()};
  return schema;
}

// Prints the line "OUT: sentence" and writes --json.
int finish(const PortPaths& o, const reports::Schema<Ported>& schema, Ported ported) {
  ported.file = o.out;
  ported.sentence = text(o.out, ": ", ported.sentence, ".");
  print_and_write(ported.sentence + "\n",
                  [&] { write_json(o.json, schema(ported), ported.sentence + "\n", *o.command); });
  return kOk;
}

// The tokenizer.json of a folder, if it has one that this program reads.
std::string tokenizer_in(const std::string& folder) try {
  if (!file_exists(folder + "/tokenizer.json")) return "";
  return tokenizers::json_of(folder, training::kMostTokenizer);
} catch (const Error& e) {
  tell("isonorm import", text("without the tokenizer: ", e.what()));
  return "";
}

// Throws if the folder's preprocessor needs something that this program does not support. Prints a line if there is
// none.
std::string preprocessor_in(const std::string& folder, const training::ModelShape& shape) {
  const std::string file = folder + "/preprocessor_config.json";
  if (!file_exists(file)) {
    tell("isonorm import", text("without a pixel scale: there is no ", file));
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

training::DataSpec spec_of(const std::string& path, const training::OpenModelFile& file) {
  const Scope scope(path);
  return training::spec_of(*file.file);
}

// The tokenizer in a file of ours, for the exported folder; empty if there is none, or if --like provides it.
std::string tokenizer_of(const PortPaths& o, const training::OpenModelFile& file) {
  const auto own = file.other.find(training::kTokenizer);
  return o.like.empty() && own != file.other.end() ? own->second : "";
}

int run_import(const PortPaths& o) {
  check_outputs({{.option = "OUT", .path = o.out, .binary = true}, {"--json", o.json}}, {{"FOLDER", o.in}});
  const hub::Folder folder = hub::open_folder(o.in);
  const Scope scope(o.in);
  const hub::Port& port = hub::port_named(folder.config.word("model_type"));
  const ModelOptions options = options_of(port, folder.config);
  const LazyState state = io::in_format(imported(port, folder, options.description()), format_named(o.dtype));
  check_tensors(options, state.outline);
  const io::FileContent content = io::content_of(state);
  Metadata metadata = options.description();
  metadata.merge(spec_in(folder, options).entries());
  save_safetensors(o.out, content.entries, metadata, content.read);
  const char* form = name_of(options.stream().form);
  return finish(o, import_schema(),
                {text(options.row().noun, " of type ", port.type, ", ", form, ", ", state.outline.size(), " tensors"),
                 "isonorm", options.row().name, std::string(port.type), form, state.outline.size()});
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

// Returns true if a model with the option `key` of `theirs` can compute the function of `ours`, if parameters that ours
// lacks are 1 (gains) or 0 (biases, positions); or if ours does not use the option.
bool contains_ours(const std::string& key, const Metadata& ours, const Metadata& theirs) {
  const auto is = [](const Metadata& model, const char* option, const char* value) {
    const auto at = model.find(text(training::kOptionPrefix, option));
    return at != model.end() && at->second == value;
  };
  const std::string option = key.substr(training::kOptionPrefix.size());
  if (option == "affine" || option == "bias" || option == "cls_position") return is(theirs, option.c_str(), "true");
  if (option == "norm_bias") return is(theirs, "norm_bias", "true") || is(ours, "affine", "false");
  if (option == "qkv_bias") return is(theirs, "qkv_bias", "true") || is(theirs, "bias", "true");
  if (option == "head_bias")
    return is(ours, "head_bias", "true") ? is(ours, "tied", "true") || is(ours, "bias", "false")
                                         : is(ours, "tied", "false");
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
// Keeps `base` as config.json if it describes the same model. Throws if no port fits, and names an option that differs
// in each.
Fitting fitting(std::span<const hub::Port> ports, const char* of, const PortPaths& o, const std::string& family,
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
  const Scope scope(o.in);
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

int run_onnx(const PortPaths& o) {
  for (const auto& [given, name] : {std::pair(!o.like.empty(), "--like"),
                                    {!o.family.empty(), "--family"},
                                    {o.shard.has_value(), "--max-shard-size"}})
    if (given) throw UsageError(text(name, " is not for an ONNX file"));
  if (!o.dtype.empty() && o.dtype != "f32" && o.dtype != "f64")
    throw UsageError(text("--dtype ", o.dtype, ": an ONNX file has f32 or f64"));
  check_outputs({{"OUT", o.out, Written::whole, {onnx::data_file(o.out)}}, {"--json", o.json}}, {{"IN", o.in}});
  const training::OpenModelFile file = training::open_model_file(o.in);
  const ModelOptions options = options_in(o.in, file);
  const Scope scope(o.in);
  DType dtype = DType::f64;
  for (const auto& [_, tensor] : file.state.outline)
    if (tensor.dtype() != DType::f64) dtype = DType::f32;
  if (!o.dtype.empty()) dtype = format_named(o.dtype)->dtype;
  const int64_t opset = o.opset.value_or(onnx::kOpsets[0]);
  const training::DataSpec spec = training::spec_of(*file.file);
  training::DataSpec of_images{.classes = spec.classes, .preprocessor = spec.preprocessor};
  onnx::save_model(o.out, file.state, options, of_images.entries(), dtype, opset);
  services::warn_of_averages(*file.file, o.in);
  const char* form = name_of(training::stored_form(options));
  return finish(o, export_schema(),
                {.sentence = text(options.row().noun, ", ", form, ", ", dtype, ", opset ", opset),
                 .format = "onnx",
                 .model = options.row().name,
                 .family = "",
                 .form = form,
                 .tensors = file.state.outline.size(),
                 .opset = opset});
}

// Null if the file has no tokenizer, or llama.cpp has none like it.
json own_gguf_tokenizer(const PortPaths& o, const training::OpenModelFile& file, int64_t vocab) try {
  const std::string own = tokenizer_of(o, file);
  return own.empty() ? json() : hub::gguf_tokenizer(tokenizers::read_tokenizer_json(own), vocab);
} catch (const Error& e) {
  tell("isonorm export", text("without the tokenizer: ", e.what()));
  return {};
}

int run_gguf(const PortPaths& o) {
  if (o.shard) throw UsageError("--max-shard-size is not for a GGUF file");
  if (o.dtype == "f64") throw UsageError("--dtype f64: a GGUF file has f32, f16 or bf16");
  check_outputs({{"OUT", o.out}, {"--json", o.json}}, {{"IN", o.in}, {"--like", o.like}});
  const training::OpenModelFile file = training::open_model_file(o.in);
  const ModelOptions options = as_published(options_in(o.in, file), file.state);
  const json tokenizer = o.like.empty() ? own_gguf_tokenizer(o, file, options.number("vocab"))
                                        : hub::gguf_tokenizer(o.like, options.number("vocab"));
  const auto [port, config, model] = fitting(hub::gguf_ports(), "GGUF files", o, o.family, json::object(), options);
  const Scope scope(o.in);
  const Metadata description = model.description();
  const LazyState state = exported(port, as_wider(file.state, model), description);
  hub::write_gguf(o.out, port, config, description, state, format_named(o.dtype), tokenizer);
  services::warn_of_averages(*file.file, o.in);
  return finish(o, export_schema(),
                {text(port.type, ", ", state.outline.size(), " tensors"), "gguf", model.row().name,
                 std::string(port.type), name_of(model.stream().form), state.outline.size()});
}

// Adds the tokens that end a text in transformers' generate(). Without the entry the class uses an id of its own
// vocabulary: 2 for a LLaMA.
void add_text_ends(json& config, const std::string& tokenizer) {
  std::vector<int64_t> ends;
  if (!tokenizer.empty()) ends = tokenizers::Tokenizer::of_json(tokenizer).end_tokens();
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = ends.empty() ? json() : ends.size() == 1 ? json(ends[0]) : json(ends);
}

int run_export(const PortPaths& o) {
  if (o.out.ends_with(".onnx")) return run_onnx(o);
  if (o.opset) throw UsageError("--opset is for an ONNX file, whose name ends with .onnx");
  if (o.out.ends_with(".gguf")) return run_gguf(o);
  check_outputs({{"--json", o.json}}, {{"IN", o.in}, {"--like", o.like}});
  hub::check_new_folder(o.out);
  const training::OpenModelFile file = training::open_model_file(o.in);
  const ModelOptions options = as_published(options_in(o.in, file), file.state);
  json base = json::object();
  std::string family = o.family;
  if (!o.like.empty()) {
    const hub::Folder like = hub::open_folder(o.like);
    base = like.config.values(), family = like.config.word("model_type");
    for (const char* other : {"isonorm", "auto_map"}) base.erase(other);  // entries for loading `like` in other ways
  } else {
    base["dtype"] = "float32";
    if (options.row().input == training::Input::text) add_text_ends(base, tokenizer_of(o, file));
  }
  const training::DataSpec spec = spec_of(o.in, file);
  if (!spec.classes.empty() && std::ssize(spec.classes) == options.number("classes"))
    hub::set_class_names(base, spec.classes);
  const auto [port, config, model] = fitting(hub::ports(), "folders", o, family, base, options);
  const Scope scope(o.in);
  const LazyState state =
      io::in_format(exported(port, as_wider(file.state, model), model.description()), format_named(o.dtype));
  hub::FolderContent content{io::content_of(state), config, {{"format", "pt"}}, o.like};
  if (const std::string own = tokenizer_of(o, file); !own.empty()) content.texts.emplace("tokenizer.json", own);
  if (!spec.preprocessor.empty())
    content.texts.emplace("preprocessor_config.json", dump(parsed(spec.preprocessor), 2) + '\n');
  hub::write_folder(o.out, content, o.shard.value_or(5'000'000'000));
  services::warn_of_averages(*file.file, o.in);
  return finish(o, export_schema(),
                {text(port.architecture, ", ", state.outline.size(), " tensors"), "folder", model.row().name,
                 std::string(port.architecture), name_of(model.stream().form), state.outline.size()});
}

// Options of both verbs.
void add_common(CLI::App& command, PortPaths& o) {
  o.command = &command;
  command.add_option("--dtype", o.dtype, "dtype of the tensors (default: unchanged)")
      ->check(CLI::IsMember(kFormatNames));
  add_json(command, o.json);
  command.footer(
      "Exit codes: 0 written, 2 usage, 3 bad input, 4 input/output, 70 no memory or threads, 130 interrupted.");
}

}  // namespace

Verb add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Make a file of this program from a published model");
  auto o = std::make_shared<PortPaths>();
  std::string names;
  for (const hub::Port& p : hub::ports()) names += text(names.empty() ? "" : ", ", p.type);
  command
      ->add_option("FOLDER", o->in,
                   text("with config.json and safetensors files, as the Hugging Face hub has it; of type ", names))
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("OUT", o->out, "the safetensors file to write, for train --init, convert, verify, prove")
      ->required();
  add_common(*command, *o);
  return {command, [o] { return run_import(*o); }, {&import_schema()}};
}

Verb add_export(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Write a checkpoint as a folder for transformers, an ONNX file or a GGUF file");
  auto o = std::make_shared<PortPaths>();
  command->add_option("IN", o->in, "a checkpoint of isonorm train, or a safetensors file that describes its model")
      ->required();
  command
      ->add_option(
          "OUT", o->out,
          "the folder to make, which the transformers library loads; or a file NAME.onnx for ONNX runtimes; or a "
          "file NAME.gguf for llama.cpp. It appears only when it is complete")
      ->required();
  command
      ->add_option(
          "--like", o->like,
          "folder of a published model of this kind. Its tokenizer and other files are copied, and the entries of "
          "config.json that are not options of the model. A GGUF file gets only the tokenizer. Without --like, IN's "
          "tokenizer is used if it has one")
      ->check(CLI::ExistingDirectory);
  std::set<std::string> opsets;
  for (int64_t opset : onnx::kOpsets) opsets.insert(text(opset));
  add_number(*command, "opset", o->opset, "opset of the ONNX file (default: 17)")->check(CLI::IsMember(opsets));
  command->add_option("--family", o->family,
                      "family of the folder or the GGUF file, such as llama (default: the first that fits)");
  add_shard_size(*command, "largest size of a weights file of the folder (default: 5GB)",
                 [o = o.get()](int64_t bytes) { o->shard = bytes; });
  add_common(*command, *o);
  return {command, [o] { return run_export(*o); }, {&export_schema()}};
}

}  // namespace isonorm::tools
