#include "tools/train_options.h"

#include <algorithm>

#include "core/system/file.h"
#include "core/system/foreign_text.h"
#include "io/data/image_sets.h"
#include "io/data/pairs.h"
#include "io/data/text.h"
#include "streams/stream.h"
#include "io/tokenizers/tokenizer.h"
#include "tools/config.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/run/identity.h"
#include "training/text_data.h"

namespace isonorm::tools {
namespace {

// The model for --preset.
const training::ModelRow& sized_model() {
  return **std::ranges::find_if(training::kModels, [](const training::ModelRow* row) { return row->preset; });
}

// If the model comes from a file, a --context below the model's means --row-length, since the model keeps its context.
void take_row_length(training::TrainerOptions& o, training::Given& given) {
  const auto at = given.find("context");
  int64_t asked = 0;
  if (at == given.end() || !o.training.model.has("context") || !read_number(at->second, asked)) return;
  const int64_t context = o.training.model.context();
  if (asked < 1 || asked > context) return;  // refused later
  o.training.row_length = asked < context ? asked : 0;
  if (asked < context) given.erase(at);
}

// Takes options that the command line does not give from the checkpoint of the training. Given options are compared
// with the checkpoint later (continued()).
void take_from_checkpoint(training::TrainerOptions& o, training::Given& given, const NewestCheckpoint& newest) {
  const Metadata& values = newest.checkpoint.values;
  const Scope scope(newest.path);
  const training::ModelOptions model = training::model_of(values);
  const std::string asked = given.emplace("model", model.row().name).first->second;
  check(asked == model.row().name, "was trained with --model ", model.row().name, ", not ", asked);
  o.training.model = model;
  training::set_as_trained(o, values);
  take_row_length(o, given);
}

// If the data have a class that the weights lack, the training uses the data's classes.
void take_other_classes(training::TrainingOptions& o) {
  std::vector<std::string>& classes = o.spec.classes;
  if (classes.empty() || !data::holds_images(o.data)) return;
  const std::vector<std::string> names = data::class_names(o.data);
  const auto known = [&](const std::string& name) { return std::ranges::count(classes, name) > 0; };
  if (!std::ranges::all_of(names, known)) classes = names;
}

// The bytes of the training's data.
data::Alphabet alphabet_of(const training::TrainingOptions& o, training::Input input) {
  if (input == training::Input::text) return data::Text(o.data).alphabet();
  const std::vector<std::string> files = data::Pairs::files(o.data);
  return data::Pairs(files[0], files[1]).alphabet();
}

// Takes model options that the command line does not give from --init, if that file has them. Options that only choose
// coordinates of the same function are not taken. Returns true if the model is the file's.
bool take_from_init(training::TrainerOptions& o, training::Given& given) {
  const training::OpenModelFile opened = training::open_model_file(o.init);
  const SafetensorsFile& file = *opened.file;
  if (opened.description.empty()) return false;
  const Scope scope(o.init);
  o.training.spec = training::spec_of(file);
  take_other_classes(o.training);
  training::ModelOptions model(opened.description);
  if (o.extend_alphabet) {
    check(!o.training.spec.alphabet.empty(), "--extend-alphabet: it is not a model of bytes");
    if (o.training.data.empty()) throw UsageError("--extend-alphabet needs --data");
    o.training.spec.alphabet = o.training.spec.alphabet.with(alphabet_of(o.training, model.row().input));
  }
  model.check_size(opened.state.outline);  // before such a model is built
  if (given.emplace("model", model.row().name).first->second != model.row().name) return false;
  if (row_of(model.stream().form).layer_norm_model())
    model.stream() = o.training.model.stream();
  else
    model.stream().storage = streams::Stored::raw;
  model.transformer().folded = false;  // gains start at 1 again
  o.training.model = model;
  take_row_length(o, given);
  return true;
}

// Sets a published size instead of the default sizes.
void take_preset(training::TrainerOptions& o, training::Given& given, const std::string& preset) {
  if (given.emplace("model", sized_model().name).first->second != sized_model().name)
    throw UsageError(text("--preset requires --model ", sized_model().name));
  try {
    o.training.model = training::ModelOptions::preset(sized_model(), preset);
  } catch (const Error& e) {
    throw UsageError(text("--preset: ", e.what()));
  }
}

// Reads --tokenizer, which must equal the tokenizer of the checkpoint or of --init if these have one. A resumed
// training does not need the file. Sets the number of tokens, from the weights of `init` if there are any, else from
// the tokenizer.
void take_tokenizer(training::TrainingOptions& o, const NewestCheckpoint* newest, const std::string& init) {
  if (o.model.row().input != training::Input::text) return;
  // A resumed training has its tokenizer in the checkpoint and does not need the file.
  if (newest && !o.spec.tokenizer.empty() && !file_exists(o.tokenizer)) o.tokenizer.clear();
  std::string json;
  const bool held = newest && !o.spec.tokenizer.empty();
  if (!o.tokenizer.empty() && (!held || file_exists(o.tokenizer))) {
    json = tokenizers::json_of(o.tokenizer, training::kMostTokenizer);
    check(o.spec.tokenizer.empty() || o.spec.tokenizer == json, o.tokenizer, ": ", newest ? newest->path : init,
          " has another tokenizer");
    o.spec.tokenizer = json, o.spec.alphabet = {};
  }
  if (o.token_vocab == 0 && !init.empty() && !o.data.empty())
    o.token_vocab = training::token_vocab_of(o.spec, o.model.number("vocab"), o.data, o.ids.has_value());
  if (json.empty()) return;
  const int64_t tokens = tokenizers::Tokenizer::of_json(json).vocab();
  if (o.token_vocab == 0 && !newest) o.token_vocab = tokens;
  check(tokens <= o.token_vocab, o.tokenizer, ": it has ids up to ", tokens - 1, ", --token-vocab is ", o.token_vocab);
}

}  // namespace

void add_train_options(GivenTraining& t, const Wanted& wanted) {
  CLI::App& command = *t.command;
  training::TrainerOptions& o = t.options;
  command.option_defaults()->group("Checkpoints and evaluation");
  command
      .add_option(
          "--config", t.config,
          "read options from this TOML file, such as width = 64; the command line wins. train --checkpoint FILE "
          "writes such a file, FILE.toml")
      ->type_name("FILE");
  command
      .add_option("--preset", t.preset,
                  text(sized_model().name,
                       ": a published LLaMA size, 9m to 7b, with the vocabulary of the data; given options win"))
      ->type_name("SIZE")
      ->group("Model");
  command
      .add_option(
          "--init", o.init,
          "begin with the weights of this file: a checkpoint, a safetensors file, a converted file of any form, "
          "or what isonorm import wrote; options of the model that are not given are the file's")
      ->type_name("FILE");
  command.add_flag("--extend-alphabet", o.extend_alphabet,
                   "with --init: bytes of the data that the file lacks become new tokens of the model");
  add_training_options(command, o.training, t.given, wanted);
  training::Fields own;
  training::fields(o, own);
  add_options(command, own.options, t.given, wanted);
}

void take_data(GivenTraining& t) {
  training::TrainingOptions& o = t.options.training;
  for (const auto& [name, file] :
       {std::pair{"data", &o.data}, {"test_data", &o.test_data}, {"tokenizer", &o.tokenizer}})
    if (const auto given = t.given.find(name); given != t.given.end()) *file = given->second;
}

void set_options(GivenTraining& t, const NewestCheckpoint* newest) {
  training::TrainerOptions& o = t.options;
  training::Given given = t.given;
  bool initialised = false;
  if (newest)
    take_from_checkpoint(o, given, *newest);
  else if (!o.init.empty())
    initialised = take_from_init(o, given);
  if (!t.preset.empty()) take_preset(o, given, t.preset);
  training::Fields own;
  training::fields(o, own);
  training::set_given(own.options, given);
  training::set_training_options(o.training, std::move(given));
  take_tokenizer(o.training, newest, initialised ? o.init : "");
  const nn::Precision products = o.training.model.transformer().precision.products;
  for (const auto& [option, asked] : {std::pair{"--activations", o.activations}, {"--precision", products}})
    if (asked != nn::Precision::full && o.training.dtype != DType::f32)
      throw UsageError(text(option, " ", name_of(asked), " does not go with --dtype ", o.training.dtype));
  for (const auto& [option, asked] : {std::pair{"--captured", o.captured}, {"--any-order", o.any_order}})
    if (asked && o.training.device == kCpu) throw UsageError(text(option, " needs --device cuda"));
}

}  // namespace isonorm::tools
