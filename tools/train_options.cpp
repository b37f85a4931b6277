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
#include "training/text_data.h"

namespace isonorm::training {

template <> struct Word<Interval> {
  static std::string values() { return "STEPS/TIME"; }
  static std::string expected(Limits) { return "a number of steps, or a time such as 30s, 10m or 2h"; }
  static std::string written(const Interval& i) { return i.seconds > 0 ? shortest(i.seconds) + "s" : text(i.steps); }
  static bool read(const std::string& word, Interval& value) {
    const std::optional<Interval> interval = Interval::read(word);
    if (interval) value = *interval;
    return interval.has_value();
  }
  static bool allowed(const Interval&, Limits) { return true; }
};

}  // namespace isonorm::training

namespace isonorm::tools {
namespace {

// Options that do not change the content of a checkpoint, and the data, which a checksum identifies.
constexpr std::string_view kNotRecorded[] = {"data", "test_data", "tokenizer", "threads",   "ranks",     "whole_parts",
                                             "zero", "device",    "captured",  "any_order", "save_every"};
constexpr std::string_view kKept[] = {"evaluate_every", "patience"};

// The training's options and the options in fields().
std::vector<training::Option> all_options(TrainOptions& o) {
  training::Fields f{options_of(o.training)};
  fields(o, f);
  return std::move(f.options);
}

// The model that --preset belongs to.
const training::ModelRow& sized_model() {
  return **std::ranges::find_if(training::kModels, [](const training::ModelRow* row) { return row->preset; });
}

// If the model comes from a file, --context below the model's context means --row-length: the model keeps its context.
void take_row_length(TrainOptions& o, training::Given& given) {
  const auto at = given.find("context");
  int64_t asked = 0;
  if (at == given.end() || !o.training.model.has("context") || !read_number(at->second, asked)) return;
  const int64_t context = o.training.model.context();
  if (asked < 1 || asked > context) return;  // which is refused
  o.training.row_length = asked < context ? asked : 0;
  if (asked < context) given.erase(at);
}

// Adds the options that a checkpoint of an older version does not have, with the values that its trainings had: they read a file as a
// text, but with --token-vocab as ids, whose width followed from their number.
void add_new_options(Metadata& values, training::Input input) {
  for (const auto& [name, value] : training::kNewOptions) values.try_emplace(name, value);
  int64_t tokens = 0;
  if (const auto at = values.find("token_vocab"); at != values.end()) read_number(at->second, tokens);
  values.try_emplace("text", input == training::Input::text && tokens == 0 ? "true" : "false");
  values.try_emplace("ids", tokens == 0 ? "" : name_of(tokens > 1 << 16 ? data::IdWidth::u32 : data::IdWidth::u16));
}

// Takes the options that the command line does not give from the checkpoint that the training continues. Given options are
// compared with the checkpoint later (continued()).
void take_from_checkpoint(TrainOptions& o, training::Given& given, NewestCheckpoint& newest) {
  Metadata& values = newest.checkpoint.values;
  const Scope scope(newest.path);
  Metadata description;
  for (const auto& entry : values)
    if (entry.first.starts_with(training::kOptionPrefix)) description.insert(entry);
  const training::ModelOptions model(description);
  const std::string asked = given.emplace("model", model.row().name).first->second;
  check(asked == model.row().name, "was trained with --model ", model.row().name, ", asked for is ", asked);
  o.training.model = model;
  for (const auto& [key, value] : model.description()) values[key] = value;  // sizes that follow from others
  add_new_options(values, model.row().input);
  set_as_trained(o, values);
  take_row_length(o, given);
}

// If the data have a class that the weights lack, the training is of the data's classes instead of the weights'.
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

// Takes the model's options that the command line does not give from --init, if that file has them. Options that only choose
// coordinates for the same function stay the training's. Returns true if the model is that of the file.
bool take_from_init(TrainOptions& o, training::Given& given) {
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
  model.check_size(opened.state.outline);  // before a model of these options is built
  if (given.emplace("model", model.row().name).first->second != model.row().name) return false;
  if (row_of(model.stream().form).layer_norm_model())
    model.stream() = o.training.model.stream();
  else
    model.stream().storage = streams::Stored::raw;
  model.transformer().folded = false;  // gains begin at 1 again
  o.training.model = model;
  take_row_length(o, given);
  return true;
}

// A published size in place of the default sizes.
void take_preset(TrainOptions& o, training::Given& given, const std::string& preset) {
  if (given.emplace("model", sized_model().name).first->second != sized_model().name)
    throw UsageError(text("--preset belongs to --model ", sized_model().name));
  try {
    o.training.model = training::ModelOptions::preset(sized_model(), preset);
  } catch (const Error& e) {
    throw UsageError(text("--preset: ", e.what()));
  }
}

// Reads --tokenizer, which must be the tokenizer of the checkpoint or of --init, if these have one. A training that goes on does not need the
// file: the checkpoint has the tokenizer. Sets the number of tokens, which follows from the weights of `init`, if there are any, or from the
// tokenizer.
void take_tokenizer(training::TrainingOptions& o, const NewestCheckpoint* newest, const std::string& init) {
  if (o.model.row().input != training::Input::text) return;
  // A training that goes on has its tokenizer in the checkpoint and does not need the file.
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

TrainOptions::TrainOptions() {
  training.model.stream().form = streams::Form::rms_norm;
  training.steps = 6000;
  training.dtype = DType::f32;
}

void fields(TrainOptions& o, training::Fields& f) {
  f.group = "Precision and devices";
  f("activations", o.activations,
    "dtype in which activations are kept for the backward: bf16 takes half the space of f32");
  f("captured", o.captured, "with --device cuda: record the step as a CUDA graph and replay it");
  f("any_order", o.any_order,
    "with --device cuda: sum in any order where that is faster; two runs then differ by rounding");
  f.group = "Optimizer";
  f("ema_warmup", o.ema_warmup,
    "keep the decay of --ema constant (default: update t = 1, 2, ... has at most (1 + t) / (10 + t))");
  f.group = "Checkpoints and evaluation";
  f("save_every", o.save_every, "save after every N steps, or after a time such as 30s, 10m or 2h; 0: only at the end");
  f("evaluate_every", o.evaluate_every, "evaluate on the test data after every N steps; 0: only at the end");
  f("patience", o.patience, "stop after N evaluations without a lower test loss; 0: run all --steps");
}

void add_train_options(GivenTraining& t, const Wanted& wanted) {
  CLI::App& command = *t.command;
  TrainOptions& o = t.options;
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
  fields(o, own);
  add_options(command, own.options, t.given, wanted);
}

void take_data(GivenTraining& t) {
  training::TrainingOptions& o = t.options.training;
  for (const auto& [name, file] :
       {std::pair{"data", &o.data}, {"test_data", &o.test_data}, {"tokenizer", &o.tokenizer}})
    if (const auto given = t.given.find(name); given != t.given.end()) *file = given->second;
}

void set_options(GivenTraining& t, NewestCheckpoint* newest) {
  TrainOptions& o = t.options;
  training::Given given = t.given;
  bool initialised = false;
  if (newest)
    take_from_checkpoint(o, given, *newest);
  else if (!o.init.empty())
    initialised = take_from_init(o, given);
  if (!t.preset.empty()) take_preset(o, given, t.preset);
  training::Fields own;
  fields(o, own);
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

training::OptionList given_of(const TrainOptions& o) {
  TrainOptions given = o, defaults;
  training::ModelOptions model(o.training.model.row());
  model.stream() = defaults.training.model.stream();
  defaults.training.model = model;
  defaults.training.warmup = training::TrainingOptions::default_warmup(given.training.step_count());
  given.training.ranks = 1;
  if (!o.training.test_data.empty()) given.training.test_share = defaults.training.test_share;  // not used
  training::OptionList all = training::given(all_options(given), all_options(defaults));
  all.insert(all.begin(), {"--model", model.row().name});
  if (!o.init.empty()) all.emplace_back("--init", o.init);
  if (o.extend_alphabet) all.emplace_back("--extend-alphabet", "");
  return all;
}

bool is_kept(std::string_view name) { return std::ranges::count(kKept, name) > 0; }

bool is_of_identity(std::string_view name) { return std::ranges::count(kNotRecorded, name) == 0 && !is_kept(name); }

void set_as_trained(TrainOptions& o, const Metadata& values) {
  o.training.spec = training::DataSpec::of(values);
  training::Fields f;
  fields(o.training, f), fields(o, f);
  for (const training::Option& option : f.options)
    if (const auto said = values.find(option.name);
        said != values.end() && (is_of_identity(option.name) || is_kept(option.name)) && is_of_train(option.name))
      check(option.set(said->second), "it was trained with ", training::word_of(option.name), " ", Shown{said->second},
            ", expected ", option.expected);
}

}  // namespace isonorm::tools
