// The options of a training for `isonorm train` and `isonorm lr-find`, from the command line, --config, --preset, --init and a
// checkpoint.
#pragma once

#include "io/checkpoint.h"
#include "tools/options.h"
#include "training/steps/loop.h"

namespace isonorm::tools {

struct TrainOptions {
  TrainOptions();

  training::TrainingOptions training;               // its stream has the trained form
  nn::Precision activations = nn::Precision::full;  // dtype of activations kept for the backward
  std::string checkpoint, init;                     // files to resume from and to start from; empty: none
  bool extend_alphabet = false;                     // adds the bytes of the data to the model in `init`
  std::string average;                              // file for the averaged weights of --ema; empty: none
  bool extend = false;                              // the checkpoint may have been trained with other steps and rates
  bool captured = false;                            // replays steps on a GPU (training/steps/step.h)
  bool any_order = false;                           // calls gpu::set_deterministic(false)
  std::string best;                                 // file for the checkpoint with the lowest test loss; empty: none
  std::string tensorboard;                          // folder for event files; empty: none
  training::Interval save_every = 500;
  int evaluate_every = 0;  // steps between two evaluations; 0: only one, at the end
  int patience = 0;   // evaluations without a lower test loss after which the training stops; 0: it takes all steps
  double epochs = 0;  // passes over the training data, in place of steps; 0: not given
  bool ema_warmup = true;  // the decay of training.ema grows to its value (optim::EmaOptions)
  OutputOptions output;
};

// The options of `isonorm train` that manifests and checkpoints record in addition to TrainingOptions.
void fields(TrainOptions& options, training::Fields& f);

// A training as the command line gives it.
struct GivenTraining {
  CLI::App* command = nullptr;
  std::string config, preset;
  training::Given given;
  TrainOptions options;
};

// Adds --config, --preset, --init, --extend-alphabet and those options of models, trainings and fields() that are `wanted`.
void add_train_options(GivenTraining& t, const Wanted& wanted);

// Sets the names of the data and of the tokenizer in t.options, which check_outputs() has to know before set_options() reads files.
void take_data(GivenTraining& t);

// Sets t.options. The command line comes first, then --preset, then the checkpoint or, without one, --init. Throws UsageError if
// they contradict each other, Error if a file does.
void set_options(GivenTraining& t, NewestCheckpoint* newest);

// The options that repeat this training, without the names of outputs: {"--model", "gpt"}, ...
training::OptionList given_of(const TrainOptions& options);

// Returns true if another value of the option makes another training. File names, threads, devices and how often to save do not.
bool is_of_identity(std::string_view name);
// Returns true if a resumed training keeps the option, which is not part of its identity, unless the command line gives it.
bool is_kept(std::string_view name);

// False for resume_at, which only proofs have, and for ranks: MPI says how many ranks a training has.
inline bool is_of_train(std::string_view name) { return name != "resume_at" && name != "ranks"; }

// Sets the options and the DataSpec that a checkpoint records, except for the model's options. Throws if a recorded value is
// not one that the option can have, and names the value.
void set_as_trained(TrainOptions& options, const Metadata& values);

}  // namespace isonorm::tools
