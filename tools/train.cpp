// isonorm train: trains one form, saves and resumes a checkpoint, evaluates.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/system/foreign_text.h"
#include "core/system/parallel.h"
#include "gpu/device.h"
#include "io/name_lock.h"
#include "streams/stream.h"
#include "tools/proof_text.h"
#include "tools/training.h"
#include "tools/training_start.h"
#include "tools/verb.h"
#include "training/model_options.h"
#include "training/records/training_log.h"
#include "training/records/training_text.h"

namespace isonorm::tools {
namespace {

using namespace equivalence;

// Whose sizes --preset names.
const training::ModelRow& sized_model() {
  return **std::ranges::find_if(training::kModels, [](const training::ModelRow* row) { return row->preset; });
}

// Adds --preset, which sets what the options behind it set anew where they are given: the parser takes them in the order
// in which they were added.
void add_preset(CLI::App& command, TrainOptions& o) {
  const auto take = [&o](const std::string& name) {
    try {
      const auto sized = training::ModelOptions::preset(sized_model(), name);
      training::ModelShape shape;  // of the data, which alone say it
      sized.give(o.training, shape);
      o.form = name_of(sized.stream().form);
    } catch (const Error& e) {
      throw CLI::ValidationError("--preset", e.what());
    }
  };
  command
      .add_option_function<std::string>(
          "--preset", take,
          text(sized_model().name,
               ": a published size of LLaMA models, 9m to 7b, but for the vocabulary, which is "
               "that of the data; other options change it"))
      ->type_name("SIZE");
}

// Options that the command line does not give are those of the checkpoint that it goes on from. The others are held
// against it later (continued()).
void take_from_checkpoint(CLI::App& command, const TrainOptions& o, const NewestCheckpoint& newest) {
  const Metadata& values = newest.checkpoint.values;
  const auto model = values.find("model");
  if (command.count("--preset") > 0 || model == values.end()) return;
  if (command.count("--model") > 0 && model->second != o.training.model->name) return;
  // In the order in which they were added: the width before that of a head, which follows from it.
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    const auto said = values.find(name);
    if (said == values.end() || option->count() > 0 || name == "data" || name == "init") continue;
    training::Manifest now;
    now.options = training::option_list(o.training);
    const Metadata without = identity(now, "");
    if (const auto at = without.find(name); at != without.end() && at->second == said->second) continue;
    try {
      option->add_result(said->second);
      option->run_callback();
    } catch (const CLI::Error&) {
      check(false, newest.path, ": it was trained with --", name, " ", Shown{said->second}, ", which cannot be");
    }
  }
}

void check_outputs(const TrainOptions& o) {
  NamedFile checkpoint{"--checkpoint", o.checkpoint};
  if (!o.checkpoint.empty()) checkpoint.beside = {previous_checkpoint(o.checkpoint), io::NameLock::file(o.checkpoint)};
  check_output_options(o.output, {data_input(o.training.data), {"--init", o.init}},
                       {checkpoint, {"--ema-file", o.average}});
}

void check_options(const CLI::App& command, TrainOptions& o) {
  check_shared_options(command, o.training);
  if (command.count("--preset") > 0 && o.training.model != &sized_model())
    throw UsageError(text("--preset belongs to --model ", sized_model().name));
  if (o.extend && o.checkpoint.empty()) throw UsageError("--extend needs --checkpoint");
  if (const double share = o.training.label_smoothing; !(share >= 0 && share <= 1))
    throw UsageError(text("--label-smoothing: ", share, ", expected a number from 0 to 1"));
  const double gates = o.training.clip_gates;
  if (gates < 0 || !std::isfinite(gates))
    throw UsageError(text("--clip-gates: ", gates, ", expected a finite number of at least 0"));
  check_precision(o.training);
  check_regularisation(o.training);
  if (!o.average.empty() && o.training.ema == 0) throw UsageError("--ema-file needs --ema");
  const DType dtype = o.training.dtype;
  if (command.count("--activations") == 0) o.activations = dtype;
  if (o.activations != dtype && (o.activations != DType::bf16 || dtype != DType::f32))
    throw UsageError(text("--activations ", o.activations, " does not go with --dtype ", dtype));
  for (const auto& [option, asked] : {std::pair{"--captured", o.captured}, {"--any-order", o.any_order}})
    if (asked && o.training.device == kCpu) throw UsageError(text(option, " needs --device cuda"));
  for (const auto& [option, every] : {std::pair{"--save-every", o.save_every}, {"--evaluate-every", o.evaluate_every}})
    if (every < 0) throw UsageError(text(option, ": ", every, " is not a whole number from 0 on"));
}

int run(CLI::App& command, TrainOptions& o) {
  check_outputs(o);
  const io::NameLock lock(o.checkpoint);  // before it is read
  std::optional<NewestCheckpoint> newest = checkpoint_to_go_on_from(o.checkpoint);
  if (newest) take_from_checkpoint(command, o, *newest);
  check_options(command, o);
  if (o.training.threads > 0) set_num_threads(o.training.threads);
  gpu::set_deterministic(!o.any_order);
  Training training(o, std::move(newest));
  if (!training.run()) {
    std::fprintf(stderr, "isonorm train: interrupted after step %d of %d%s\n", training.step_count(),
                 o.training.step_count(),
                 o.checkpoint.empty() ? "" : text("; the same command goes on from ", o.checkpoint).c_str());
    return kInterrupted;
  }
  show(document_of(training.result()), o.output.quiet, o.output.report, o.output.json);
  return kOk;
}

}  // namespace

Verb add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train one form, save and resume a checkpoint, evaluate");
  auto o = std::make_shared<TrainOptions>();
  o->training.steps = 6000;
  o->training.dtype = DType::f32;
  add_preset(*command, *o);
  command->add_option("--form", o->form, streams::listed(streams::kForms, " or "))
      ->capture_default_str()
      ->check(one_of(streams::kForms));
  add_shared_options(*command, o->training);
  add_choice(*command, "--activations", o->activations, {DType::f32, DType::f64, DType::bf16},
             "in which they wait for the backward (default: that of --dtype; bf16 of f32: in half the space)");
  command->add_flag("--captured", o->captured,
                    "with --device cuda: a step is written down as a CUDA graph and done again by one launch");
  command->add_flag("--any-order", o->any_order,
                    "with --device cuda: sums may be taken in any order where that is faster; two runs differ by "
                    "rounding");
  add_connection(*command, o->training.connection);
  add_regularisation(*command, o->training);
  command->add_option("--ema-file", o->average, "file for the averaged weights of --ema, which test passes take");
  command
      ->add_option("--label-smoothing", o->training.label_smoothing,
                   "share of a target's weight in the training loss that all classes have alike; tests are without")
      ->capture_default_str();
  command->add_option("--clip-gates", o->training.clip_gates,
                      "largest norm of the gradients of the gates of gpas connections, before --clip; 0: no limit");
  add_precision(*command, o->training.precision);
  command->add_option(
      "--checkpoint", o->checkpoint,
      "file to go on from where it exists, and to save to; options that are not given are then the file's");
  command->add_flag(
      "--extend", o->extend,
      "go on from --checkpoint with another --steps, --lr, --warmup, --schedule, --weight-decay or --clip");
  command->add_option(
      "--init", o->init,
      "file whose weights to begin with: a checkpoint, a safetensors file, a converted one of any form");
  command->add_option("--save-every", o->save_every, "steps between two savings; 0: only at the end")
      ->capture_default_str();
  command
      ->add_option("--evaluate-every", o->evaluate_every,
                   "steps between two test passes, each a line; 0: only at the end")
      ->capture_default_str();
  add_output_options(*command, o->output, "the training", "result");
  command->footer(
      "Ctrl-C saves the checkpoint and exits with 130; the same command goes on, bit-equal. The checkpoint before the "
      "last is kept as FILE.previous; a log is added to, after the steps that the checkpoint has.\n"
      "The rate of a step follows from its number and the options alone: after 300 steps --steps 600 --extend goes on "
      "at the rates of steps 301 to 600 of a training of 600. That is another training than 600 steps from the start.\n"
      "--init begins at step 1, with warm-up and a new optimizer.\n"
      "Exit codes: 0 trained, 2 usage, 3 bad input, 4 input/output, 6 numbers are no longer finite, 70 no memory or "
      "threads, 130 interrupted.");
  return {command, [o, command] { return run(*command, *o); }};
}

}  // namespace isonorm::tools
