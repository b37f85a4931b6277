// A small classifier, and hand-written optimizers that update its parameters one by one.
#pragma once

#include "isonorm.h"

namespace isonorm::unseen {

using equivalence::Comparison, equivalence::compare_trajectories, equivalence::Which, training::Examples;
using Parameters = std::vector<Tensor>;
using Make = std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)>;

// update(i, w, g) changes parameter i with its gradient g at step t_ = 1, 2, ...
class OwnOptimizer : public optim::Optimizer {
 public:
  OwnOptimizer(const Parameters& parameters, double rate)
      : Optimizer("own", parameters.size()), parameters_(parameters) {
    add_group(parameters, rate);
    for (const Tensor& w : parameters) {
      first_.push_back(zeros_like(w));
      second_.push_back(zeros_like(w));
    }
  }
  void step(double scale) override {
    const NoGrad no_graph;
    ++t_;
    begin();
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (Tensor w = parameters_[i]; w.grad().defined()) update(i, w, w.grad() * scale);
  }

 protected:
  virtual void begin() {}
  virtual void update(size_t i, Tensor& w, const Tensor& g) = 0;
  Parameters parameters_, first_, second_;  // and two moments of each parameter
  int t_ = 0;
};

// Rows of 6 numbers with a class each; a network of two layers and a norm.
struct Classifier : nn::Module {
  nn::Linear& in = add("in", nn::Linear(6, 10));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(10));
  nn::Linear& out = add("out", nn::Linear(10, 3));

  Classifier() { to(DType::f64); }
  Tensor forward(const Tensor& x) override { return out(tanh(norm(in(x)))); }
};

inline Examples rows(int64_t step) {
  Generator data{6, static_cast<uint64_t>(step)};
  return {randn({8, 6}, {DType::f64}, data), randint(0, 3, {8}, kCpu, data)};
}

inline Comparison compare_optimizers(const Make& first, const Make& second, int steps = 12) {
  const auto make = [=](const Parameters& p, Which which) { return which == Which::first ? first(p) : second(p); };
  manual_seed(8);
  return compare_trajectories([] { return std::make_unique<Classifier>(); },
                              [] { return std::make_unique<Classifier>(); }, {}, training::cross_entropy_of, make, rows,
                              {.steps = steps});
}
template <class Own> Comparison compare_optimizers(const Make& first, double rate) {
  return compare_optimizers(first, [=](const Parameters& p) { return std::make_unique<Own>(p, rate); });
}

}  // namespace isonorm::unseen
