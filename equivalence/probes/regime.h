// What a training has beside its architecture and optimizer: the certificate's last rows.
#pragma once

#include <span>

#include "training/training_options.h"

namespace isonorm::equivalence {

struct Regime {
  const char* name;          // "dropout"
  const char* architecture;  // that it is trained on, by name
  void (*change)(training::TrainingOptions& options);
};

// Dropout, stochastic depth, layer scale, decay of matrices alone, accumulation, an average, a run that is resumed.
std::span<const Regime> regimes();

}  // namespace isonorm::equivalence
