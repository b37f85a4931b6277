// Rows from outside of the library: a model, optimizer or arrangement that a program defines itself. Titles, manifests
// and certificates mark their names.
#pragma once

#include "core/error.h"
#include "training/training_options.h"

namespace isonorm::training {

inline constexpr const char* kFromOutside = " (from outside)";

// True if the row is in optimizers(), kModels or nn::kArrangements, whatever its name.
bool listed(const OptimizerRow& row);
bool listed(const ModelRow& row);
bool listed(const nn::Arrangement& row);

// True if the model, the optimizer or the connections are from outside.
bool from_outside(const TrainingOptions& o);

// Throws, naming the row, if the row lacks a name or a required function.
void check_rows(const TrainingOptions& o);

// "adamw", "soft_sign (from outside)".
template <class Row> std::string name_and_origin(const Row& row) {
  return text(row.name, listed(row) ? "" : kFromOutside);
}

// "adamw"; with a model or connections from outside: "adamw, model bounded (from outside)".
std::string rows_text(const TrainingOptions& o);

}  // namespace isonorm::training
