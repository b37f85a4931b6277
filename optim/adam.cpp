#include "optim/adam.h"

namespace isonorm::optim {

template class ElementwiseGroups<Adam, AdamOptions>;
template class ElementwiseGroups<AdamW, AdamWOptions>;

Adam::Group Adam::group_of(const AdamOptions& o) {
  return {.conditions = {fraction("beta1", o.beta1), fraction("beta2", o.beta2), not_negative("eps", o.eps),
                         not_negative("weight_decay", o.weight_decay)},
          .state = {"exp_avg", "exp_avg_sq"}};
}

Adam::Step Adam::step_with(const AdamOptions& o, double lr, int64_t t) {
  return {.rule = rules::Adam::at(t, lr, o.beta1, o.beta2, o.eps), .l2 = o.weight_decay};
}

AdamW::Group AdamW::group_of(const AdamWOptions& o) {
  return Adam::group_of({o.lr, o.beta1, o.beta2, o.eps, o.weight_decay});
}

AdamW::Step AdamW::step_with(const AdamWOptions& o, double lr, int64_t t) {
  return {.rule = rules::Adam::at(t, lr, o.beta1, o.beta2, o.eps), .keep = 1 - lr * o.weight_decay};
}

}  // namespace isonorm::optim
