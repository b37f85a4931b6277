// The optimizers by name: a row of data each, in the table of the .cpp. docs/adding_an_optimizer.md walks through
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

// Numbers of an optimizer beside its rate and decay. Of a row: those that it has, with their defaults.
struct Tuning {
  std::optional<double> beta1 = {}, beta2 = {}, momentum = {}, eps = {};

  // These, and where one is not set that of `defaults`.
  constexpr Tuning over(const Tuning& defaults) const {
    const auto one = [](const auto& own, const auto& other) { return own ? own : other; };
    return {one(beta1, defaults.beta1), one(beta2, defaults.beta2), one(momentum, defaults.momentum),
            one(eps, defaults.eps)};
  }
};

struct OptimizerRow {
  const char* name;
  // The optimizer over the tensors of the parameters, with rate and decay of the options.
  std::unique_ptr<optim::Optimizer> (*make)(const TrainingOptions&, const std::vector<nn::NamedParameter>&);
  bool decoupled = false;   // weight decay acts on the weights beside the step; else it is L2, a part of the gradient
  double weight_decay = 0;  // where none is asked for
  bool choice = true;       // of --optimizer; false: in the grid alone
  Tuning tuning = {};       // that it takes
  // What is not as a reader would assume, in a sentence; empty where there is nothing.
  std::string (*note)(DType dtype) = [](DType) { return std::string(); };
};
constexpr const char* name_of(const OptimizerRow* o) { return o->name; }

std::span<const OptimizerRow> optimizers();
// By name. Throws listing all.
const OptimizerRow& optimizer(std::string_view name);

// The optimizer that `options` name, with their rate, decay and tuning, over the tensors of `parameters`. Throws where one of the
// patterns `no_decay` is no parameter's name, and where the row does not take what is tuned.
std::unique_ptr<optim::Optimizer> build_optimizer(const TrainingOptions& options,
                                                  const std::vector<nn::NamedParameter>& parameters);

}  // namespace isonorm::training
