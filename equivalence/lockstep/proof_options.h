// What a proof trains and holds against each other: every option of `isonorm prove`, with its default. Plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "streams/stream.h"
#include "training/records/manifest.h"
#include "training/training_options.h"

namespace isonorm::equivalence {

struct ProofOptions {
  training::TrainingOptions training;  // of the reference, which is always layer_norm, and of every other run
  // Held against the reference; named as nn names them.
  std::vector<std::string> forms = streams::names_of(streams::kCentredForms);
  // Another device: layer_norm is trained there, too, and held against the reference as a form is.
  std::optional<Device> against = {};
  int controls = 4;  // runs of the reference with every weight moved by one ulp
};

// Of a training with these options, and forms and controls among them.
training::Manifest manifest_of(const ProofOptions& options);

}  // namespace isonorm::equivalence
