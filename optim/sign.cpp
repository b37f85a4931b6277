#include "optim/sign.h"

namespace isonorm::optim {

template class ElementwiseGroups<SignSgd, SignSgdOptions>;
template class ElementwiseGroups<Lion, LionOptions>;

SignSgd::Group SignSgd::group_of(const SignSgdOptions& o) {
  Group g{.conditions = {fraction("momentum", o.momentum), not_negative("weight_decay", o.weight_decay)}};
  if (o.momentum > 0) g.state = {"exp_avg"};
  return g;
}

SignSgd::Step SignSgd::step_with(const SignSgdOptions& o, double lr, int64_t) {
  UpdateRule rule = rules::Sign{lr};
  if (o.momentum > 0) rule = rules::Lion{.lr = lr, .beta1 = o.momentum, .beta2 = o.momentum};
  return {.rule = rule, .keep = 1 - lr * o.weight_decay};
}

Lion::Group Lion::group_of(const LionOptions& o) {
  return {.conditions = {fraction("beta1", o.beta1), fraction("beta2", o.beta2),
                         not_negative("weight_decay", o.weight_decay)},
          .state = {"exp_avg"}};
}

Lion::Step Lion::step_with(const LionOptions& o, double lr, int64_t) {
  return {.rule = rules::Lion{.lr = lr, .beta1 = o.beta1, .beta2 = o.beta2}, .keep = 1 - lr * o.weight_decay};
}

}  // namespace isonorm::optim
