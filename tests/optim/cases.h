// Every optimizer, with options that reach every branch, and its published rule.
#pragma once

#include <functional>
#include <memory>

#include "optim/optimizer.h"
#include "tests/optim/published.h"

namespace isonorm {

struct OptimizerCase {
  const char* name;
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)> make;
  published::Rule rule{};  // empty: compared with the fixture only
};

const std::vector<OptimizerCase>& optimizer_cases();

// The state with t under `name`, or without this name if t is undefined.
TensorMap with(const TensorMap& state, const std::string& name, const Tensor& t);

}  // namespace isonorm
