// Internal: The experiments that experiment.cpp lists, each in the file of its name.
#pragma once

#include "equivalence/experiments/experiment.h"

namespace isonorm::equivalence {

// E13: which changes of weights and data a norm does not see (1910.07467, table 1), and how its gradients scale.
ExperimentResult invariance(const ExperimentOptions& options);

// E16: trainings of the forms against controls that differ by one ulp (2305.14858, figures 6 and 7).
ExperimentResult trajectories(const ExperimentOptions& options);

// E18: logits and gradients of a ViT and a GPT with random weights in every form (2305.14858, sections 3.1 to 3.3).
ExperimentResult conversion(const ExperimentOptions& options);

// How often rounding alone breaks the bound of criterion.h: Pre-LN moved by one ulp, some seeds against others. At
// least 24 seeds.
ExperimentResult controls(const ExperimentOptions& options);

// What mixed precision does to a loss curve (1905.12322), against f32 and f32 from other weights.
ExperimentResult precision(const ExperimentOptions& options);

}  // namespace isonorm::equivalence
