// The options of a training for `isonorm train` and `isonorm lr-find`: those of the command line, of --config, --preset, --init and
// of a checkpoint.
#pragma once

#include "io/checkpoint.h"
#include "tools/options.h"
#include "training/steps/loop.h"

namespace isonorm::tools {

struct TrainOptions {
  TrainOptions();

  training::TrainingOptions training;               // its stream is that of the trained form
  nn::Precision activations = nn::Precision::full;  // in which they wait for the backward
  std::string checkpoint, init;                     // files to go on from and to begin with; empty: none
  bool extend_alphabet = false;                     // of init's weights by the characters of the data
  std::string tokenizer;                            // of the ids of the data, where it is named; empty: it is not
  std::string tokenizer_json;                       // what is in it, or what checkpoint or init have of it
  std::string average;                              // file for the averaged weights of --ema; empty: none
  bool extend = false;                              // the checkpoint may have been trained with other steps and rates
  bool captured = false;                            // steps of a GPU are replayed (training/steps/step.h)
  bool any_order = false;                           // gpu::set_deterministic(false)
  std::string best;                                 // file for the checkpoint of the least test loss; empty: none
  std::string tensorboard;                          // folder for event files; empty: none
  training::Interval save_every = 500;
  int evaluate_every = 0;  // steps between two evaluations; 0: only one, at the end
  int patience = 0;   // evaluations without a lower test loss after which the training stops; 0: it takes all steps
  double epochs = 0;  // in place of steps; 0: not given
  OutputOptions output;
};

// The options of `isonorm train` that manifests and checkpoints record in addition to TrainingOptions.
void fields(TrainOptions& options, training::Fields& f);

// A training as the command line gives it.
struct GivenTraining {
  CLI::App* command = nullptr;
  std::string config, preset;
  Given given;
  TrainOptions options;
};

// Adds --config, --preset, --init, --extend-alphabet and those options of models, trainings and fields() that are `wanted`.
void add_train_options(GivenTraining& t, const Wanted& wanted);

// Sets t.options. The command line comes first, then --preset, then the checkpoint or, without one, --init. Throws UsageError if
// they contradict each other, Error if a file does.
void set_options(GivenTraining& t, NewestCheckpoint* newest);

// The options from which the same training can be repeated, but for the names of outputs: {"--model", "gpt"}, ...
training::OptionList given_of(const TrainOptions& options);

// Whether an option makes a training another one: file names, threads, devices and how often to save do not.
bool is_of_identity(std::string_view name);
// Whether a resumed training keeps an option that is not of its identity unless the command line gives another value.
bool is_kept(std::string_view name);

// Of proofs alone: resume_at. MPI says how many ranks a training has.
inline bool is_of_train(std::string_view name) { return name != "resume_at" && name != "ranks"; }

// Sets the options and the characters that a checkpoint records, but for the model's. Throws naming a value that an option cannot have.
void set_as_trained(TrainOptions& options, const Metadata& values);

}  // namespace isonorm::tools
