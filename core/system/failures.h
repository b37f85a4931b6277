// Failures that are no Error: options that are wrong, numbers that are lost, and work that was stopped.
#pragma once

#include <stdexcept>

namespace isonorm {

// Options that contradict each other or the files that they name.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Weights, a loss or logits are NaN or infinite.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by work whose caller asked it to stop.
struct Interrupted {};

}  // namespace isonorm
