#include "equivalence/grid/recipe.h"

#include "training/from_outside.h"
#include "training/options/rows.h"

namespace isonorm::equivalence {

std::span<const Recipe> recipes() {
  using training::optimizer;
  static const Recipe all[] = {
      {"sgd", "SGD", &optimizer("sgd"), 0.1},
      {"momentum", "momentum", &optimizer("momentum"), 0.03},
      {"nesterov", "Nesterov", &optimizer("nesterov"), 0.03},
      {"sgd_l2", "SGD + L2", &optimizer("sgd"), 0.1, 0.1},
      {"momentum_decoupled", "momentum + decay", &optimizer("sgdw"), 0.03, 0.1},
      {"adam", "Adam", &optimizer("adam"), 0.01},
      {"adam_l2", "Adam + L2", &optimizer("adam"), 0.01, 0.1},
      {"adamw", "AdamW", &optimizer("adamw"), 0.01, 0.1},
      {"clip_momentum", "clip + momentum", &optimizer("momentum"), 0.1, 0, {.clip = 0.3}},
      {"clip_adamw", "clip + AdamW", &optimizer("adamw"), 0.01, 0.1, {.clip = 0.3}},
      {"clip_l2", "clip (L2 in loss)", &optimizer("momentum"), 0.1, 0, {.clip = 0.3, .loss_l2 = 0.1}},
      {"sign", "sign", &optimizer("sign"), 0.003},
      {"lamb", "LAMB", &optimizer("lamb"), 0.01, 0.1},
      {"lion", "Lion", &optimizer("lion"), 0.003, 0.1},
      {"rmsprop", "RMSprop", &optimizer("rmsprop"), 0.003},
      {"adagrad", "Adagrad", &optimizer("adagrad"), 0.03},
      {"clip_value", "value clip", &optimizer("sgd"), 0.3, 0, {.clip_value = 0.01}},
      {"lars", "LARS", &optimizer("lars"), 10},
      {"adafactor", "Adafactor", &optimizer("adafactor"), 0.01},
      {"muon", "Muon, AdamW", &optimizer("muon"), 0.01, 0.1},
      {"muon_alone", "Muon alone", &optimizer("muon_alone"), 0.03, 0.1},
      {"muon_shaped", "Muon alone, rate by shape", &optimizer("muon_shaped"), 0.01, 0.1},
  };
  return all;
}

std::string title_of(const Recipe& r) { return text(r.title, listed(*r.optimizer) ? "" : training::kFromOutside); }

const Recipe& recipe(std::string_view name) { return training::row_named(recipes(), name, "recipe"); }

training::TrainingOptions with_recipe(training::TrainingOptions o, const Recipe& r) {
  o.optimizer = r.optimizer;
  o.lr = r.lr;
  o.weight_decay = r.weight_decay;
  o.clip = r.limits.clip;
  o.clip_value = r.limits.clip_value;
  o.loss_l2 = r.limits.loss_l2;
  return o;
}

}  // namespace isonorm::equivalence
