#include "optim/sgd.h"

namespace isonorm::optim {

template class ElementwiseGroups<Sgd, SgdOptions>;

Sgd::Group Sgd::group_of(const SgdOptions& o) {
  Group g{.conditions = {fraction("momentum", o.momentum),
                         not_negative("weight_decay", o.weight_decay),
                         fraction("dampening", o.dampening),
                         {!o.nesterov || o.momentum > 0, "momentum", o.momentum, "more than 0 with nesterov"},
                         {!o.nesterov || o.dampening == 0, "dampening", o.dampening, "0 with nesterov"}}};
  if (o.momentum > 0) g.state = {"momentum_buffer"};
  return g;
}

Sgd::Step Sgd::step_with(const SgdOptions& o, double lr, int64_t t) {
  UpdateRule rule = rules::Sgd{lr};
  if (o.momentum > 0)
    rule = rules::Momentum{.lr = lr,
                           .momentum = o.momentum,
                           .take = t == 1 ? 1 : 1 - o.dampening,
                           .now = o.nesterov ? 1.0 : 0.0,
                           .ahead = o.nesterov ? o.momentum : 1};
  return {rule, o.decoupled ? 0 : o.weight_decay, o.decoupled ? 1 - lr * o.weight_decay : 1};
}

}  // namespace isonorm::optim
