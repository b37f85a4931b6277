// Rows of a program's own: a model, an optimizer or an arrangement that this library does not list. Titles, manifests
// and certificates say so behind the name.
#pragma once

#include "core/error.h"
#include "training/training_options.h"

namespace isonorm::training {

inline constexpr const char* kFromOutside = " (from outside)";

// Whether a row is one of optimizers(), kModels or nn::kArrangements; whatever it calls itself.
bool listed(const OptimizerRow& row);
bool listed(const ModelRow& row);
bool listed(const nn::Arrangement& row);

// Whether the model, the optimizer or the connections are.
bool from_outside(const TrainingOptions& o);

// Throws, naming it, where a row lacks a name or a function that its comment asks for.
void check_rows(const TrainingOptions& o);

// "adamw", "soft_sign (from outside)".
template <class Row> std::string name_and_origin(const Row& row) {
  return text(row.name, listed(row) ? "" : kFromOutside);
}

// "adamw"; where the model or the connections are a program's own, "adamw, model bounded (from outside)".
std::string rows_text(const TrainingOptions& o);

}  // namespace isonorm::training
