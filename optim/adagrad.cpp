#include "optim/adagrad.h"

namespace isonorm::optim {

Adagrad::Adagrad(const std::vector<Tensor>& parameters, AdagradOptions options)
    : Adagrad(std::vector<ParameterGroup<AdagradOptions>>{{parameters, options}}) {}

Adagrad::Adagrad(const std::vector<ParameterGroup<AdagradOptions>>& groups)
    : ElementwiseOptimizer("adagrad", count(groups)) {
  for (const auto& [parameters, o] : groups) {
    check_not_negative("lr_decay", o.lr_decay);
    check_not_negative("weight_decay", o.weight_decay);
    check_not_negative("initial", o.initial);
    check_not_negative("eps", o.eps);
    add_group(parameters, o.lr, {"sum"}, o.initial);
    options_.push_back(o);
  }
}

Adagrad::Step Adagrad::step_of(int group, int64_t t) const {
  const AdagradOptions& o = options_[group];
  const double rate = lr(group) / (1 + static_cast<double>(t - 1) * o.lr_decay);
  return {.rule = rules::Adagrad{.lr = rate, .eps = o.eps}, .l2 = o.weight_decay};
}

}  // namespace isonorm::optim
