#include "optim/adamw.h"

namespace isonorm::optim {

AdamW::AdamW(const std::vector<Tensor>& parameters, AdamWOptions options)
    : AdamW(std::vector<ParameterGroup<AdamWOptions>>{{parameters, options}}) {}

AdamW::AdamW(const std::vector<ParameterGroup<AdamWOptions>>& groups) : AdamBase("adamw", count(groups), true) {
  for (const auto& [parameters, o] : groups) add_group(parameters, {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay});
}

}  // namespace isonorm::optim
