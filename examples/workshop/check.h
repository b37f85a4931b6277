// Whether a step computes what it should.
#pragma once

#include "examples/workshop/task.h"

namespace isonorm::workshop {

struct Verdict {
  double error = 0;       // the largest, divided by its tolerance
  bool same_bits = true;  // for one thread and for three
};

// Adds to the verdict on each step what it makes of the task.
void check_steps(const Task& task, std::span<Verdict> verdicts);

}  // namespace isonorm::workshop
