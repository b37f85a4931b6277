// Options of a training that some models have and others not: which have them follows from the models' rows.
#pragma once

#include <string>

#include "training/model_row.h"

namespace isonorm::training {

// A number or a flag: one of the two is not null.
struct OwnOption {
  const char* name;  // as in files: "mean_pool"
  const char* help;
  int64_t TrainingOptions::*number = nullptr;
  bool TrainingOptions::*flag = nullptr;

  std::string word() const;                              // on the command line: "mean-pool"
  std::string value_in(const TrainingOptions& o) const;  // as text
};

inline constexpr OwnOption kOwnOptions[] = {
    {.name = "patch", .help = "side of a patch in pixels", .number = &TrainingOptions::patch},
    {.name = "context", .help = "characters in a row", .number = &TrainingOptions::context},
    {.name = "tied", .help = "the head reads with the token table", .flag = &TrainingOptions::tied},
    {.name = "shared", .help = "source and target have one table", .flag = &TrainingOptions::shared},
    {.name = "mean_pool",
     .help = "the mean of the tokens, taken before the last norm, instead of a class token",
     .flag = &TrainingOptions::mean_pool},
};

// Whether models of this row have an option of that name: "tied".
bool has(const ModelRow& row, std::string_view option);

// The names of the models that have the option, or that read such input: "vit, mixer".
std::string models_with(std::string_view option, const char* separator = ", ");
std::string models_with(Input input, const char* separator = ", ");

}  // namespace isonorm::training
