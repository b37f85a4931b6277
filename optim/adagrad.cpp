#include "optim/adagrad.h"

namespace isonorm::optim {

template class ElementwiseGroups<Adagrad, AdagradOptions>;

Adagrad::Group Adagrad::group_of(const AdagradOptions& o) {
  return {.conditions = {not_negative("lr_decay", o.lr_decay), not_negative("weight_decay", o.weight_decay),
                         not_negative("initial", o.initial), not_negative("eps", o.eps)},
          .state = {"sum"},
          .initial = o.initial};
}

Adagrad::Step Adagrad::step_with(const AdagradOptions& o, double lr, int64_t t) {
  return {.rule = rules::Adagrad{.lr = lr / (1 + static_cast<double>(t - 1) * o.lr_decay), .eps = o.eps},
          .l2 = o.weight_decay};
}

}  // namespace isonorm::optim
