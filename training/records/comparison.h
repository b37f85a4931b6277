// Comparison of several trainings by their logs.
#pragma once

#include <string>
#include <vector>

#include "reports/result.h"
#include "training/records/training_log.h"

namespace isonorm::training {

struct NamedTraining {
  std::string name;  // name of the log file
  LoggedTraining logged;
};

// A document with the end of each training, the options that differ, and their curves in common panels: loss,
// test loss and accuracy, learning rate, gradient norm, steps per second.
reports::Document comparison_of(const std::vector<NamedTraining>& trainings);
// The JSON of comparison_of().
const reports::Description& comparison_description();

}  // namespace isonorm::training
