// Recipes: an optimizer, its rate and everything that is done around its step, by name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "training/training_options.h"

namespace isonorm::equivalence {

// Changes to gradients before the optimizer, as in training::TrainingOptions.
struct Limits {
  double clip = 0, clip_value = 0, loss_l2 = 0;
};

struct Recipe {
  const char *name, *title;  // "clip_momentum", "clip + momentum"
  const training::OptimizerRow* optimizer;
  double lr;
  double weight_decay = 0;
  Limits limits = {};
};

std::string title_of(const Recipe& recipe);  // its title, and " (from outside)" if the optimizer is a program's own

// The columns of `isonorm table`; the first ones are the table in docs/normalization.md. Rates and limits are
// chosen so that on its model every clip acts and no run diverges.
std::span<const Recipe> recipes();
// Finds the recipe with this name. If there is none, throws an error that lists all names.
const Recipe& recipe(std::string_view name);

// `options` with the optimizer, the rate and the limits of the recipe.
training::TrainingOptions with_recipe(training::TrainingOptions options, const Recipe& recipe);

}  // namespace isonorm::equivalence
