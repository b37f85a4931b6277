// The options of a training for `isonorm train` and `isonorm lr-find`: from the command line, --config, --preset,
// --init and a checkpoint.
#pragma once

#include "io/checkpoint.h"
#include "tools/options.h"
#include "training/run/trainer_options.h"

namespace isonorm::tools {

// A training as the command line gives it.
struct GivenTraining {
  CLI::App* command = nullptr;
  std::string config, preset;
  training::Given given;
  training::TrainerOptions options;
  OutputOptions output;
};

// Adds --config, --preset, --init, --extend-alphabet, and the options of models, trainings and fields() that are
// `wanted`.
void add_train_options(GivenTraining& t, const Wanted& wanted);

// Sets the names of data and tokenizer in t.options. check_outputs() needs them before set_options() reads files.
void take_data(GivenTraining& t);

// Sets t.options. The command line has precedence, then --preset, then the checkpoint or, without one, --init. Throws
// UsageError if they contradict each other, and Error if a file is invalid.
void set_options(GivenTraining& t, const NewestCheckpoint* newest);

}  // namespace isonorm::tools
