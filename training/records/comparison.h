// Several trainings beside each other, as their logs have them.
#pragma once

#include <string>
#include <vector>

#include "reports/result.h"
#include "training/records/training_log.h"

namespace isonorm::training {

struct NamedTraining {
  std::string name;  // of the log's file
  LoggedTraining logged;
};

// Where each ended, the options in which they differ, and their curves over each other: loss, test loss and accuracy, rate,
// gradient norm, steps per second.
reports::Document comparison_of(const std::vector<NamedTraining>& trainings);
// The JSON of comparison_of().
const reports::Description& comparison_description();

}  // namespace isonorm::training
