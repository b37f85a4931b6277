#include "optim/rmsprop.h"

namespace isonorm::optim {

template class ElementwiseGroups<Rmsprop, RmspropOptions>;

Rmsprop::Group Rmsprop::group_of(const RmspropOptions& o) {
  Group g{.conditions = {fraction("alpha", o.alpha), not_negative("eps", o.eps),
                         not_negative("weight_decay", o.weight_decay), fraction("momentum", o.momentum)},
          .state = {"square_avg"}};
  if (o.centered) g.state.push_back("grad_avg");
  if (o.momentum > 0) g.state.push_back("momentum_buffer");
  return g;
}

Rmsprop::Step Rmsprop::step_with(const RmspropOptions& o, double lr, int64_t) {
  const auto with = [&]<class Rule>(Rule) {
    return Step{.rule = Rule{lr, o.alpha, o.eps, o.momentum}, .l2 = o.weight_decay};
  };
  if (o.centered) return o.momentum > 0 ? with(rules::Rmsprop<true, true>{}) : with(rules::Rmsprop<true, false>{});
  return o.momentum > 0 ? with(rules::Rmsprop<false, true>{}) : with(rules::Rmsprop<false, false>{});
}

}  // namespace isonorm::optim
