// Options of a whole training, from its first step to its last: model, data and optimizer, and its output files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "io/safetensors.h"
#include "nn/module.h"
#include "training/options/option.h"
#include "training/records/manifest.h"
#include "training/source.h"
#include "training/steps/loop.h"
#include "training/training_options.h"

namespace isonorm::training {

struct TrainerOptions {
  TrainerOptions();  // rms_norm, 6000 steps in f32

  TrainingOptions training;                         // the form of its stream is the one that is trained
  nn::Precision activations = nn::Precision::full;  // dtype of activations kept for the backward
  double epochs = 0;                                // passes over the training data, in place of steps; 0: not given
  bool captured = false;                            // replays steps on a GPU (training/steps/step.h)
  bool any_order = false;                           // calls gpu::set_deterministic(false)
  bool ema_warmup = true;                           // the decay of training.ema grows to its value (optim::EmaOptions)

  std::string init;              // file of the initial weights; empty: random weights
  bool extend_alphabet = false;  // the model has the bytes of the data that the model in `init` lacks
  // Reads `init` for the built model, whose data have this spec: services::initial_weights(). Not set: the file has the
  // model's parameters by their names.
  std::function<TensorMap(const nn::Module& model, const DataSpec& spec)> read_init = {};

  std::string checkpoint;  // file to save to, and to continue from if it exists; empty: none
  bool extend = false;     // the checkpoint may have been trained with other steps and rates (kExtendable)
  Interval save_every = 500;
  int evaluate_every = 0;  // steps between two evaluations; 0: only one, at the end
  int patience = 0;     // evaluations without a lower test loss after which the training stops; 0: it takes all steps
  std::string best;     // file for the checkpoint with the lowest test loss; empty: none
  std::string average;  // file for the averaged weights of training.ema; empty: none
  std::string log;      // file with a line of JSON for each step, or a row of CSV if the name ends in .csv; empty: none
  std::string tensorboard;  // folder for event files; empty: none
  bool quiet = false;       // nothing about the training's progress on standard error
};

// The options that manifests and checkpoints record in addition to TrainingOptions.
void fields(TrainerOptions& options, Fields& f);
// The options of TrainingOptions and of fields().
std::vector<Option> all_options(TrainerOptions& options);

// The options that repeat this training, without the names of outputs: {"--model", "gpt"}, ...
OptionList given_of(const TrainerOptions& options);
// All options of a training, and its data.
Manifest manifest_of(const TrainerOptions& options, const Source& source);

// Returns true if another value of the option makes another training. File names, threads, devices and the interval of
// saving do not.
bool is_of_identity(std::string_view name);
// Returns true if a resumed training keeps the option, which is not part of its identity, unless another value is
// given.
bool is_kept(std::string_view name);
// False for resume_at, which only proofs have, and for ranks, whose number MPI determines.
inline bool is_of_train(std::string_view name) { return name != "resume_at" && name != "ranks"; }

// Sets the options and the DataSpec that a checkpoint records, except for the model's options. Throws if a recorded
// value is not one that the option can have, and names the value.
void set_as_trained(TrainerOptions& options, const Metadata& values);

// Throws UsageError if options contradict each other, or if the value of an option of the training is not an allowed
// one.
void check_options(const TrainerOptions& options);

}  // namespace isonorm::training
