// Checks that a step computes LayerNorm.
#pragma once

#include "examples/workshop/task.h"

namespace isonorm::workshop {

struct StepErrors {
  double error = 0;       // largest error / tolerance
  bool same_bits = true;  // with one thread and with three
};

// Updates the errors of each step with its results for the task.
void check_steps(const Task& task, std::span<StepErrors> errors);

}  // namespace isonorm::workshop
