#include "equivalence/grid/recipe.h"

#include "core/error.h"

namespace isonorm::equivalence {
namespace {

constexpr Recipe kRecipes[] = {
    {"sgd", "SGD", "sgd", 0.1},
    {"momentum", "momentum", "momentum", 0.03},
    {"nesterov", "Nesterov", "nesterov", 0.03},
    {"sgd_l2", "SGD + L2", "sgd", 0.1, 0.1},
    {"momentum_decoupled", "momentum + decay", "sgdw", 0.03, 0.1},
    {"adam", "Adam", "adam", 0.01},
    {"adam_l2", "Adam + L2", "adam", 0.01, 0.1},
    {"adamw", "AdamW", "adamw", 0.01, 0.1},
    {"clip_momentum", "clip + momentum", "momentum", 0.1, 0, {.clip = 0.3}},
    {"clip_adamw", "clip + AdamW", "adamw", 0.01, 0.1, {.clip = 0.3}},
    {"clip_l2", "clip (L2 in loss)", "momentum", 0.1, 0, {.clip = 0.3, .loss_l2 = 0.1}},
    {"sign", "sign", "sign", 0.003},
    {"lamb", "LAMB", "lamb", 0.01, 0.1},
    {"lion", "Lion", "lion", 0.003, 0.1},
    {"rmsprop", "RMSprop", "rmsprop", 0.003},
    {"adagrad", "Adagrad", "adagrad", 0.03},
    {"clip_value", "value clip", "sgd", 0.3, 0, {.clip_value = 0.01}},
    {"lars", "LARS", "lars", 10},
    {"adafactor", "Adafactor", "adafactor", 0.01},
    {"muon", "Muon, AdamW", "muon", 0.01, 0.1},
    {"muon_alone", "Muon alone", "muon_alone", 0.03, 0.1},
    {"muon_shaped", "Muon alone, rate by shape", "muon_shaped", 0.01, 0.1},
};

}  // namespace

const training::OptimizerRow& optimizer_of(const Recipe& r) {
  return r.own ? *r.own : training::optimizer(r.optimizer);
}
std::string title_of(const Recipe& r) { return text(r.title, r.own ? " (from outside)" : ""); }

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

training::TrainingOptions with_recipe(training::TrainingOptions o, const Recipe& r) {
  o.optimizer = &optimizer_of(r);
  o.lr = r.lr;
  o.weight_decay = r.weight_decay;
  o.clip = r.limits.clip;
  o.clip_value = r.limits.clip_value;
  o.loss_l2 = r.limits.loss_l2;
  return o;
}

}  // namespace isonorm::equivalence
