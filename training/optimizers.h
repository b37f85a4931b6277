// The optimizers by name, one row of data each; the table is in the .cpp. docs/adding_an_optimizer.md walks through
// one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "nn/module.h"
#include "optim/optimizer.h"

namespace isonorm::training {

struct TrainingOptions;

// Settings of an optimizer other than learning rate and weight decay. In OptimizerRow::tuning a member is set if the
// optimizer has the setting; its value is the default.
struct Tuning {
  std::optional<double> beta1 = {}, beta2 = {}, momentum = {}, eps = {};

  // Returns these settings, with unset ones taken from `defaults`.
  constexpr Tuning over(const Tuning& defaults) const {
    const auto one = [](const auto& own, const auto& other) { return own ? own : other; };
    return {one(beta1, defaults.beta1), one(beta2, defaults.beta2), one(momentum, defaults.momentum),
            one(eps, defaults.eps)};
  }
};

struct OptimizerRow {
  const char* name;
  // Makes the optimizer for these parameters, with the learning rate and weight decay of the options.
  std::unique_ptr<optim::Optimizer> (*make)(const TrainingOptions&, const std::vector<nn::NamedParameter>&);
  bool decoupled = false;   // decoupled weight decay (AdamW); false: L2, added to the gradient
  double weight_decay = 0;  // the default
  bool choice = true;       // a choice of --optimizer; false: only for the grid
  Tuning tuning = {};       // the optimizer's settings and their defaults
  // A sentence on behaviour that a reader would not expect; empty if there is none.
  std::string (*note)(DType dtype) = [](DType) { return std::string(); };
};
constexpr const char* name_of(const OptimizerRow* o) { return o->name; }

std::span<const OptimizerRow> optimizers();
// Finds an optimizer by name. If there is none, throws with all names.
const OptimizerRow& optimizer(std::string_view name);

// Makes the optimizer that `options` name, with their rate, decay and settings, for these parameters. Throws if a
// pattern in `no_decay` matches no parameter, or if the optimizer does not have a setting that is set.
std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& options,
                                                  const std::vector<nn::NamedParameter>& parameters);

}  // namespace isonorm::training
