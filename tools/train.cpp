// isonorm train: trains one form, saves and resumes a checkpoint, evaluates.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "distributed/world.h"
#include "gpu/device.h"
#include "io/tokenizers/tokenizer.h"
#include "io/unfinished.h"
#include "streams/stream.h"
#include "tools/config.h"
#include "tools/help.h"
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

// The options of the run, for --config.
std::string config_beside(const TrainOptions& o) { return o.checkpoint + ".toml"; }

// The file that --config reads is not written.
bool writes_config(const TrainOptions& o, const std::string& config) {
  return !o.checkpoint.empty() && !one_file(config_beside(o), config);
}

void check_config_beside(const TrainOptions& o, const std::string& config) {
  if (writes_config(o, config)) check_ours(config_beside(o), kConfigBegin, "--checkpoint " + o.checkpoint);
}

// True if the path, or a folder that it lies in, is the file.
bool is_at_or_below(const std::filesystem::path& path, const std::string& file) {
  return one_file(path.string(), file) ||
         (path.has_parent_path() && path != path.parent_path() && is_at_or_below(path.parent_path(), file));
}

void check_outputs(const TrainOptions& o, const std::string& config) {
  NamedFile checkpoint{"--checkpoint", o.checkpoint}, best{"--best", o.best};
  if (!o.checkpoint.empty()) checkpoint.beside = {previous_checkpoint(o.checkpoint), io::NameLock::file(o.checkpoint)};
  if (writes_config(o, config)) checkpoint.beside.push_back(config_beside(o));
  if (!o.best.empty()) best.beside = {io::NameLock::file(o.best)};
  for (const std::string& file : {o.checkpoint, o.best, o.average, o.output.log, o.output.report, o.output.json})
    if (is_at_or_below(o.tensorboard, file))
      throw UsageError(text("--tensorboard: ", o.tensorboard, " is to be a folder, and ", file, " a file"));
  check_output_options(o.output,
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

void check_options(const TrainOptions& o) {
  check_data(o.training);
  if (o.extend_alphabet && o.init.empty()) throw UsageError("--extend-alphabet needs --init");
  if (o.extend && o.checkpoint.empty()) throw UsageError("--extend needs --checkpoint");
  if (!o.average.empty() && o.training.ema == 0) throw UsageError("--ema-file needs --ema");
  if (!o.best.empty() && o.evaluate_every == 0) throw UsageError("--best needs --evaluate-every");
  if (o.patience > 0 && o.evaluate_every == 0) throw UsageError("--patience needs --evaluate-every");
}

int run(GivenTraining& verb) {
  take_config(*verb.command, verb.config);
  TrainOptions& o = verb.options;
  distributed::Group& ranks = distributed::world();
  const bool first = ranks.rank() == 0;
  take_data(verb);
  if (!first) o.output = {}, o.output.quiet = true, o.tensorboard = "";  // one rank prints and writes
  if (first) check_outputs(o, verb.config);
  make_folder(o.tensorboard);
  const io::NameLock lock(first ? o.checkpoint : ""), best_lock(first ? o.best : "");  // before they are read
  ranks.barrier();
  std::optional<NewestCheckpoint> newest = checkpoint_to_go_on_from(o.checkpoint);
  ranks.check_same(newest ? text(newest->path, " after step ", integer_at(newest->checkpoint.values, "step"))
                          : text("there is no ", o.checkpoint),
                   "checkpoint");
  set_options(verb, newest ? &*newest : nullptr);
  o.training.ranks = ranks.size();
  check_options(o);
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  gpu::set_deterministic(!o.any_order);
  Training training(o, std::move(newest));
  const bool repeats = !training.result().manifest.command.empty();
  if (first && repeats && writes_config(o, verb.config)) {
    check_config_beside(o, verb.config);
    write_file(config_beside(o), config_of("train", given_of(o)));
  }
  if (!training.run()) {
    if (!first) return kInterrupted;
    return fail("isonorm train",
                text("interrupted after step ", training.step_count(), " of ", o.training.step_count(),
                     o.checkpoint.empty() ? "" : text("; the same command goes on from ", o.checkpoint)),
                kInterrupted);
  }
  ranks.on_first([&] { show(document_of(training.result()), o.output.quiet, o.output.report, o.output.json); });
  return kOk;
}

}  // namespace

Verb add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train one form of a model: save, resume, evaluate");
  auto verb = std::make_shared<GivenTraining>();
  verb->command = command;
  TrainOptions* o = &verb->options;
  add_train_options(*verb, is_of_train);
  command->add_option("--ema-file", o->average,
                      "write the averaged weights of --ema into this file; test passes use these weights");
  command->add_option(
      "--checkpoint", o->checkpoint,
      "save to this file, and resume from it if it exists; options that are not given are the file's, but for "
      "--data and --test-data");
  command->add_flag(
      "--extend", o->extend,
      "go on from --checkpoint with other --steps, --lr, --warmup, --schedule, --min-lr, --weight-decay or --clip");
  command->add_option("--best", o->best,
                      "keep the checkpoint with the lowest test loss in this file (needs --evaluate-every)");
  add_number(*command, "epochs", o->epochs,
             "number of passes over the training data, instead of --steps (default: --steps)", training::above(0))
      ->excludes("--steps");
  command->get_option("--epochs")->group("Training");
  command->add_option("--tensorboard", o->tensorboard, "write event files of TensorBoard into this folder")
      ->group("Output");
  add_output_options(*command, o->output, "the training", "result");
  command->get_option("--log")->description(
      "write a line of JSON for each step, or a row of CSV if the name ends in .csv");
  command->footer(
      "Ctrl-C saves the checkpoint and exits with 130, as do SIGTERM and the notices of batch systems, SIGUSR1 and "
      "SIGUSR2. The same command then goes on, to the same bits. The checkpoint "
      "before the last is kept as FILE.previous. A resumed training keeps the log up to the checkpoint's step and adds "
      "to it.\n"
      "The learning rate of a step follows from its number and the options alone. So after 300 steps, --steps 600 "
      "--extend goes on at the rates of steps 301 to 600 of a training of 600 steps. That is another training than 600 "
      "steps from the start.\n"
      "--init begins at step 1, with warm-up and a new optimizer.\n"
      "Exit codes: 0 trained, 2 usage, 3 bad input, 4 input/output, 6 numbers are not finite, 70 no memory or "
      "threads, 130 interrupted.");
  lead_with(*command, {"--model", "--data", "--form", "--width", "--depth", "--context", "--steps", "--batch", "--lr",
                       "--checkpoint"});
  return {command, [verb] { return run(*verb); }};
}

}  // namespace isonorm::tools
