// isonorm train: trains one form, saves and resumes a checkpoint, evaluates.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "distributed/world.h"
#include "gpu/device.h"
#include "io/name_lock.h"
#include "streams/stream.h"
#include "tokenizers/tokenizer.h"
#include "tools/config.h"
#include "tools/training.h"
#include "tools/training_start.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/options/option.h"
#include "training/records/training_log.h"
#include "training/records/training_text.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

// Whose sizes --preset names.
const training::ModelRow& sized_model() {
  return **std::ranges::find_if(training::kModels, [](const training::ModelRow* row) { return row->preset; });
}

// Options that the command line does not give are those of the checkpoint that it goes on from. The others are held
// against it later (continued()).
void take_from_checkpoint(TrainOptions& o, const Given& given, const NewestCheckpoint& newest) {
  const Metadata& values = newest.checkpoint.values;
  const Scope scope(newest.path);
  Metadata description;
  for (const auto& entry : values)
    if (entry.first.starts_with(training::kOptionPrefix)) description.insert(entry);
  const training::ModelOptions model(description);
  if (const auto asked = given.find("model"); asked != given.end())
    check(asked->second == model.row().name, "was trained with --model ", model.row().name, ", asked for is ",
          asked->second);
  o.training.model = model;
  set_as_trained(o, values);
}

// The model's options that the command line does not give are those of --init, where it says them. Of coordinates of one
// function the training's own stay.
void take_from_init(TrainOptions& o, const Given& given) {
  const SafetensorsFile file(o.init);
  const Metadata description = training::model_description(file);
  if (description.empty()) return;
  const Scope scope(o.init);
  o.training.alphabet = training::alphabet_of(file);
  if (o.extend_alphabet) {
    check(!o.training.alphabet.empty(), "--extend-alphabet: it is no model of characters");
    if (o.training.data.empty()) throw UsageError("--extend-alphabet needs --data");
    o.training.alphabet = o.training.alphabet.with(data::Text(o.training.data).alphabet());
  }
  if (const Metadata ids = training::ids_of(file); ids.contains(training::kTokenizer))
    o.tokenizer_json = ids.at(training::kTokenizer);
  training::ModelOptions model(description);
  if (const auto asked = given.find("model"); asked != given.end() && asked->second != model.row().name) return;
  if (row_of(model.stream().form).layer_norm_model())
    model.stream() = o.training.model.stream();
  else
    model.stream().storage = streams::Stored::raw;
  model.transformer().folded = false;  // gains begin at 1 again
  o.training.model = model;
}

// What the command line, a published size and a checkpoint say.
void set_options(TrainOptions& o, Given given, const std::string& preset, const NewestCheckpoint* newest) {
  if (newest)
    take_from_checkpoint(o, given, *newest);
  else if (!o.init.empty())
    take_from_init(o, given);
  if (!preset.empty()) {
    if (const auto asked = given.find("model"); asked != given.end() && asked->second != sized_model().name)
      throw UsageError(text("--preset belongs to --model ", sized_model().name));
    try {
      o.training.model = training::ModelOptions::preset(sized_model(), preset);
    } catch (const Error& e) {
      throw UsageError(text("--preset: ", e.what()));
    }
  }
  training::Fields f;
  fields(o, f);
  set_given(f.options, given);
  set_training_options(o.training, std::move(given));
}

// What is in --tokenizer, which a checkpoint has to agree with. Of --init's own it takes the place.
void take_tokenizer(TrainOptions& o, const NewestCheckpoint* newest) {
  const int64_t ids = o.training.token_vocab;
  if (o.tokenizer.empty() && ids > 0) return;
  if (o.tokenizer.empty()) return o.tokenizer_json.clear();  // of weights that are trained on characters now
  if (ids == 0) throw UsageError("--tokenizer belongs to --token-vocab");
  std::string json = tokenizers::json_of(o.tokenizer, training::kMostTokenizer);
  check(!newest || o.tokenizer_json.empty() || o.tokenizer_json == json, o.tokenizer, ": ", newest ? newest->path : "",
        " has another tokenizer");
  const int64_t tokens = tokenizers::Tokenizer::of_json(json).vocab();
  check(tokens <= ids, o.tokenizer, ": it has ids up to ", tokens - 1, ", --token-vocab is ", ids);
  o.tokenizer_json = std::move(json);
}

// The options of the run, for --config.
std::string config_beside(const TrainOptions& o) { return o.checkpoint + ".toml"; }

void check_outputs(const TrainOptions& o, const std::string& config) {
  NamedFile checkpoint{"--checkpoint", o.checkpoint}, best{"--best", o.best};
  if (!o.checkpoint.empty()) checkpoint.beside = {previous_checkpoint(o.checkpoint), io::NameLock::file(o.checkpoint)};
  if (const std::string written = config_beside(o); !o.checkpoint.empty() && !one_file(written, config))
    checkpoint.beside.push_back(written);
  if (!o.best.empty()) best.beside = {io::NameLock::file(o.best)};
  check_output_options(
      o.output, {data_input(o.training.data), {"--init", o.init}, {"--tokenizer", o.tokenizer}, {"--config", config}},
      {checkpoint, best, {"--ema-file", o.average}});
}

void check_options(const TrainOptions& o) {
  check_data(o.training);
  if (o.extend_alphabet && o.init.empty()) throw UsageError("--extend-alphabet needs --init");
  if (o.extend && o.checkpoint.empty()) throw UsageError("--extend needs --checkpoint");
  if (!o.average.empty() && o.training.ema == 0) throw UsageError("--ema-file needs --ema");
  const nn::Precision products = o.training.model.transformer().precision.products;
  for (const auto& [option, asked] : {std::pair{"--activations", o.activations}, {"--precision", products}})
    if (asked != nn::Precision::full && o.training.dtype != DType::f32)
      throw UsageError(text(option, " ", name_of(asked), " does not go with --dtype ", o.training.dtype));
  for (const auto& [option, asked] : {std::pair{"--captured", o.captured}, {"--any-order", o.any_order}})
    if (asked && o.training.device == kCpu) throw UsageError(text(option, " needs --device cuda"));
  if (!training::Interval::read(o.save_every))
    throw UsageError(
        text("--save-every: ", Shown{o.save_every, '"'}, " is no number of steps, nor a time as 30s, 10m or 2h"));
  if (!o.best.empty() && o.evaluate_every == 0) throw UsageError("--best needs --evaluate-every");
  if (o.patience > 0 && o.evaluate_every == 0) throw UsageError("--patience needs --evaluate-every");
}

struct TrainVerb {
  CLI::App* command;
  std::string config;
  TrainOptions options;
  Given given;
  std::string preset;
};

int run(TrainVerb& verb) {
  take_config(*verb.command, verb.config);
  TrainOptions& o = verb.options;
  distributed::Group& ranks = distributed::world();
  const bool first = ranks.rank() == 0;
  if (const auto data = verb.given.find("data"); data != verb.given.end()) o.training.data = data->second;
  if (!first) o.output = {}, o.output.quiet = true, o.tensorboard = "";  // one rank prints and writes
  if (first) check_outputs(o, verb.config);
  make_folder(o.tensorboard);
  const io::NameLock lock(first ? o.checkpoint : ""), best_lock(first ? o.best : "");  // before they are read
  ranks.barrier();
  std::optional<NewestCheckpoint> newest = checkpoint_to_go_on_from(o.checkpoint);
  set_options(o, verb.given, verb.preset, newest ? &*newest : nullptr);
  take_tokenizer(o, newest ? &*newest : nullptr);
  o.training.ranks = ranks.size();
  check_options(o);
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  gpu::set_deterministic(!o.any_order);
  Training training(o, std::move(newest));
  const bool repeats = !training.result().manifest.command.empty();
  if (first && !o.checkpoint.empty() && repeats && !one_file(config_beside(o), verb.config))
    write_file(config_beside(o), config_of("train", given_of(o)));
  if (!training.run()) {
    if (!first) return kInterrupted;
    return fail("isonorm train",
                text("interrupted after step ", training.step_count(), " of ", o.training.step_count(),
                     o.checkpoint.empty() ? "" : text("; the same command goes on from ", o.checkpoint)),
                kInterrupted);
  }
  if (first) show(document_of(training.result()), o.output.quiet, o.output.report, o.output.json);
  return kOk;
}

}  // namespace

Verb add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train one form of a model: save, resume, evaluate");
  auto verb = std::make_shared<TrainVerb>();
  verb->command = command;
  TrainOptions* o = &verb->options;
  command
      ->add_option(
          "--config", verb->config,
          "read options from this TOML file, such as width = 64; the command line wins. --checkpoint FILE writes "
          "such a file, FILE.toml")
      ->type_name("FILE");
  command
      ->add_option("--preset", verb->preset,
                   text(sized_model().name,
                        ": a published LLaMA size, 9m to 7b, with the vocabulary of the data; given options win"))
      ->type_name("SIZE");
  add_training_options(*command, o->training, verb->given, is_of_train);
  training::Fields f;
  fields(*o, f);
  add_options(*command, f.options, verb->given, {}, "Training");
  command->add_option("--tokenizer", o->tokenizer,
                      "the tokenizer that made the ids of --data: tokenizer.json or its folder; it goes into the "
                      "checkpoint, for sample");
  command->add_option("--ema-file", o->average,
                      "write the averaged weights of --ema into this file; test passes use these weights");
  command->add_option("--checkpoint", o->checkpoint,
                      "save to this file, and resume from it if it exists; options that are not given are the file's");
  command->add_flag(
      "--extend", o->extend,
      "go on from --checkpoint with other --steps, --lr, --warmup, --schedule, --min-lr, --weight-decay or --clip");
  command->add_option(
      "--init", o->init,
      "begin with the weights of this file: a checkpoint, a safetensors file, a converted file of any form, or what "
      "isonorm import wrote; options of the model that are not given are the file's");
  command->add_flag("--extend-alphabet", o->extend_alphabet,
                    "with --init: characters of the text that the file lacks become new characters of the model");
  command
      ->add_option("--save-every", o->save_every,
                   "save each time after so many steps, or after a time such as 30s, 10m or 2h; 0: only at the end")
      ->type_name("STEPS|TIME")
      ->capture_default_str();
  add_number(*command, "evaluate_every", o->evaluate_every,
             "steps between two test passes; each prints a line; 0: only at the end");
  command->add_option("--best", o->best,
                      "keep the checkpoint with the lowest test loss in this file (needs --evaluate-every)");
  add_number(*command, "patience", o->patience,
             "end after so many test passes in a row without a lower loss; 0: end after --steps");
  add_number(*command, "epochs", o->epochs,
             "number of passes over the training data, instead of --steps (default: --steps)", training::above(0))
      ->excludes("--steps");
  command->add_option("--tensorboard", o->tensorboard, "write event files of TensorBoard into this folder");
  add_output_options(*command, o->output, "the training", "result");
  command->get_option("--log")->description(
      "write a line of JSON for each step, or a row of CSV if the name ends in .csv");
  command->footer(
      "Ctrl-C saves the checkpoint and exits with 130. The same command then goes on, to the same bits. The checkpoint "
      "before the last is kept as FILE.previous. A resumed training keeps the log up to the checkpoint's step and adds "
      "to it.\n"
      "The learning rate of a step follows from its number and the options alone. So after 300 steps, --steps 600 "
      "--extend goes on at the rates of steps 301 to 600 of a training of 600 steps. That is another training than 600 "
      "steps from the start.\n"
      "--init begins at step 1, with warm-up and a new optimizer.\n"
      "Exit codes: 0 trained, 2 usage, 3 bad input, 4 input/output, 6 numbers are no longer finite, 70 no memory or "
      "threads, 130 interrupted.");
  return {command, [verb] { return run(*verb); }};
}

}  // namespace isonorm::tools
