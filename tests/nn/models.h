// Shared by the tests of modules: names, parts of fixtures, random weights and their size.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "nn/module.h"
#include "tests/support/ops.h"

namespace isonorm::nn {

constexpr TensorOptions kF64{DType::f64};

inline std::vector<std::string> names(const Module& m) {
  std::vector<std::string> found;
  for (const NamedParameter& p : m.named_parameters()) found.push_back(p.name);
  return found;
}

inline NamedParameter parameter(const Module& m, const std::string& name) {
  for (const NamedParameter& p : m.named_parameters())
    if (p.name == name) return p;
  throw std::runtime_error("no parameter " + name);
}

// The entries whose names begin with `prefix`, under names without it.
inline TensorMap below(const TensorMap& all, const std::string& prefix) {
  TensorMap found;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) found.add(name.substr(prefix.size()), tensor);
  return found;
}

// Converts to f64 and draws all parameters from a normal distribution with mean 0.1 and deviation `size`.
inline void draw(Module& model, uint64_t seed, double size = 0.4) {
  model.to(DType::f64);
  manual_seed(seed);
  for (const Tensor& p : model.parameters()) copy_into(detach(p), randn(p.shape(), kF64) * size + 0.1);
}

// The largest absolute value of an entry; infinite if one is NaN.
inline double largest(const Tensor& x) {
  double found = 0;
  for (double v : x.to_vector<double>()) found = std::isnan(v) ? INFINITY : std::max(found, std::abs(v));
  return found;
}

// Loads the reference's weights into `other`. Checks that its logits are within `bound`, and its gradients within 2
// bound, both relative to the largest entry. run(model) returns the logits and adds gradients to the parameters.
template <class Model, class Run>
void check_same_function(Model& reference, Model& other, double bound, const Run& run) {
  other.to(DType::f64);
  other.load_state_dict(reference.state_dict());
  const Tensor expected = run(reference);
  check_close(run(other), expected, bound);
  const std::vector<NamedParameter> of = reference.named_parameters();
  double scale = 1;
  for (const NamedParameter& p : of) scale = std::max(scale, largest(p.tensor.grad()));
  for (size_t i = 0; i < of.size(); ++i) {
    INFO(of[i].name);
    CHECK(largest(other.parameters()[i].grad() - of[i].tensor.grad()) <= 2 * bound * scale);
  }
}

// Checks that the root mean square is `expected` within six standard errors of a normal sample.
inline void check_deviation(const Tensor& x, double expected) {
  const double found = std::sqrt(mean(square(x.to(DType::f64))).item());
  INFO("deviation " << found << ", expected " << expected);
  CHECK(std::abs(found / expected - 1) < 6 / std::sqrt(2 * static_cast<double>(x.numel())));
}

}  // namespace isonorm::nn
