// The models by name, in the order in which the command line lists them. Each has a row of its own,
// training/models/<name>.cpp; model_row.h says what it holds.
#pragma once

#include <span>

namespace isonorm::training {

struct ModelRow;
extern const ModelRow kVit, kGpt;
inline constexpr const ModelRow* kModels[] = {&kVit, &kGpt};

// Where a name or a module is looked up: kModels, or a list with rows of a program's own.
using ModelList = std::span<const ModelRow* const>;

}  // namespace isonorm::training
