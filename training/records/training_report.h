// A training as one HTML file that needs nothing else: no scripts, no network; readable in light, in dark and on paper.
#pragma once

#include <string>

#include "training/records/training_result.h"

namespace isonorm::training {

// The page of a training: curves of loss, learning rate, gradient norm and accuracy, of the steps before it, too, as
// far as `earlier` has them; evaluations, environment and command.
std::string report_html(const TrainingResult& training);

}  // namespace isonorm::training
