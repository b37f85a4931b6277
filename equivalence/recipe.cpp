#include "equivalence/recipe.h"

#include "core/error.h"

namespace isonorm::equivalence {
namespace {

using enum UpdateClass;
using enum OptimizerKind;

constexpr Recipe kRecipes[] = {
    {"sgd", "SGD", linear, sgd, 0.1},
    {"momentum", "momentum", linear, momentum, 0.03},
    {"nesterov", "Nesterov", linear, nesterov, 0.03},
    {"sgd_l2", "SGD + L2", linear, sgd, 0.1, 0.1},
    {"adam", "Adam", elementwise, adam, 0.01},
    {"adam_l2", "Adam + L2", weighted, adam, 0.01, 0.1},
    {"adamw", "AdamW", elementwise, adamw, 0.01, 0.1},
    {.name = "clip_momentum",
     .title = "clip + momentum",
     .update = clipped,
     .optimizer = momentum,
     .lr = 0.1,
     .clip = 0.3},
    {"clip_adamw", "clip + AdamW", elementwise, adamw, 0.01, 0.1, 0.3},
    {.name = "clip_l2",
     .title = "clip (L2 in loss)",
     .update = weighted,
     .optimizer = momentum,
     .lr = 0.1,
     .clip = 0.3,
     .loss_l2 = 0.1},
    {.name = "clip_value_sgd",
     .title = "value clip",
     .update = elementwise,
     .optimizer = sgd,
     .lr = 0.1,
     .clip_value = 0.01},
};

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

std::string recipe_names() {
  std::string names;
  for (const Recipe& r : kRecipes) names += text(names.empty() ? "" : ", ", r.name);
  return names;
}

const Recipe& recipe(std::string_view name) {
  for (const Recipe& r : kRecipes)
    if (name == r.name) return r;
  check(false, "recipe: none is called '", name, "'; there are ", recipe_names());
  return kRecipes[0];
}

ProofOptions with_recipe(ProofOptions o, const Recipe& r) {
  o.optimizer = r.optimizer;
  o.lr = r.lr;
  o.weight_decay = r.weight_decay;
  o.clip = r.clip;
  o.clip_value = r.clip_value;
  o.loss_l2 = r.loss_l2;
  return o;
}

}  // namespace isonorm::equivalence
