// isonorm train: trains one form, with checkpoints, test passes and logs.
#include <filesystem>

#include "core/error.h"
#include "distributed/world.h"
#include "equivalence/services/initial_weights.h"
#include "io/unfinished.h"
#include "tools/config.h"
#include "tools/help.h"
#include "tools/interrupt.h"
#include "tools/train_options.h"
#include "tools/verb.h"
#include "training/records/training_text.h"
#include "training/run/given.h"
#include "training/run/trainer.h"

namespace isonorm::tools {
namespace {

using training::TrainerOptions;

// The config file that is written next to the checkpoint.
std::string config_beside(const TrainerOptions& o) { return o.checkpoint + ".toml"; }

// False if --config reads that file, which is then not overwritten.
bool writes_config(const TrainerOptions& o, const std::string& config) {
  return !o.checkpoint.empty() && !services::one_file(config_beside(o), config);
}

void check_config_beside(const TrainerOptions& o, const std::string& config) {
  if (writes_config(o, config)) check_ours(config_beside(o), kConfigBegin, "--checkpoint " + o.checkpoint);
}

// True if the path is the file or lies below it.
bool is_at_or_below(const std::filesystem::path& path, const std::string& file) {
  return services::one_file(path.string(), file) ||
         (path.has_parent_path() && path != path.parent_path() && is_at_or_below(path.parent_path(), file));
}

void check_outputs(const GivenTraining& verb) {
  const TrainerOptions& o = verb.options;
  const std::string& config = verb.config;
  NamedFile checkpoint{"--checkpoint", o.checkpoint}, best{"--best", o.best};
  if (!o.checkpoint.empty()) checkpoint.beside = {previous_checkpoint(o.checkpoint), io::NameLock::file(o.checkpoint)};
  if (writes_config(o, config)) checkpoint.beside.push_back(config_beside(o));
  if (!o.best.empty()) best.beside = {io::NameLock::file(o.best)};
  for (const std::string& file :
       {o.checkpoint, o.best, o.average, verb.output.log, verb.output.report, verb.output.json})
    if (is_at_or_below(o.tensorboard, file))
      throw UsageError(text("--tensorboard: ", o.tensorboard, " is to be a folder, and ", file, " a file"));
  check_output_options(verb.output,
                       {data_input(o.training.data),
                        test_data_input(o.training.test_data),
                        {"--init", o.init},
                        {"--tokenizer", o.training.tokenizer},
                        {"--config", config}},
                       {checkpoint, best, {.option = "--ema-file", .path = o.average, .binary = true}});
  if (o.checkpoint.empty()) return;
  check_previous_checkpoint(o.checkpoint);
  check_config_beside(o, config);
}

int run_train(GivenTraining& verb) {
  take_config(*verb.command, verb.config);
  TrainerOptions& o = verb.options;
  distributed::Group& ranks = distributed::world();
  const bool first = ranks.rank() == 0;
  take_data(verb);
  o.log = verb.output.log, o.quiet = verb.output.quiet;
  if (first) check_outputs(verb);
  if (first) make_folder(o.tensorboard);
  auto files = std::make_unique<training::LockedCheckpoint>(o);
  set_options(verb, files->newest ? &*files->newest : nullptr);
  training::check_data(o.training);
  o.read_init = [&o](const nn::Module& model, const training::DataSpec& spec) {
    return services::initial_weights(o.init, model, o.training.dtype, spec, o.extend_alphabet);
  };
  training::Trainer trainer(o, std::move(files));
  const bool repeats = !trainer.result().manifest.command.empty();
  if (first && repeats && writes_config(o, verb.config)) {
    check_config_beside(o, verb.config);
    write_file(config_beside(o), config_of("train", given_of(trainer.options())));
  }
  catch_interrupt();
  if (!trainer.train(interrupted)) {
    if (!first) return kInterrupted;
    return fail("isonorm train",
                text("interrupted after step ", trainer.step_count(), " of ", trainer.options().training.step_count(),
                     o.checkpoint.empty() ? "" : text("; the same command continues from ", o.checkpoint)),
                kInterrupted);
  }
  ranks.on_first([&] { show(document_of(trainer.result()), o.quiet, verb.output.report, verb.output.json); });
  return kOk;
}

}  // namespace

Verb add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train one form of a model: save, resume, evaluate");
  auto verb = std::make_shared<GivenTraining>();
  verb->command = command;
  TrainerOptions* o = &verb->options;
  add_train_options(*verb, training::is_of_train);
  command->add_option("--ema-file", o->average,
                      "write the averaged weights of --ema into this file; test passes use these weights");
  command->add_option(
      "--checkpoint", o->checkpoint,
      "save to this file, and resume from it if it exists; options that are not given are the file's, but for "
      "--data and --test-data");
  command->add_flag(
      "--extend", o->extend,
      "continue from --checkpoint with other --steps, --lr, --warmup, --schedule, --min-lr, --weight-decay or --clip");
  command->add_option("--best", o->best,
                      "keep the checkpoint with the lowest test loss in this file (needs --evaluate-every)");
  add_number(*command, "epochs", o->epochs,
             "number of passes over the training data, instead of --steps (default: --steps)", training::above(0))
      ->excludes("--steps");
  command->get_option("--epochs")->group("Training");
  command->add_option("--tensorboard", o->tensorboard, "write event files of TensorBoard into this folder")
      ->group("Output");
  add_output_options(*command, verb->output, "the training", "result");
  command->get_option("--log")->description(
      "write a line of JSON for each step, or a row of CSV if the name ends in .csv");
  command->footer(
      "Ctrl-C saves the checkpoint and exits with 130, as do SIGTERM and the notices of batch systems, SIGUSR1 and "
      "SIGUSR2. The same command then continues, with the same bits as an uninterrupted training. The previous "
      "checkpoint is kept as FILE.previous. A resumed training keeps the log up to the checkpoint's step and appends "
      "to it.\nThe learning rate of a step depends only on its number and the options. So after 300 steps, --steps 600 "
      "--extend continues with the rates of steps 301 to 600 of a training of 600 steps. This differs from 600 steps "
      "from the start.\n--init starts at step 1, with warm-up and a new optimizer.\n" +
      exit_codes("0 trained", "6 numbers are not finite"));
  lead_with(*command, {"--model", "--data", "--form", "--width", "--depth", "--context", "--steps", "--batch", "--lr",
                       "--checkpoint"});
  return {command, [verb] { return run_train(*verb); }, {&training::training_description()}};
}

}  // namespace isonorm::tools
