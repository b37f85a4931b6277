#include "distributed/parallel/sharded_parameters.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "core/memory/storage.h"
#include "nn/linear.h"
#include "distributed/parallel/collectives.h"

namespace isonorm::parallel {

using distributed::Group;

struct ShardedParameters::Rows {
  std::string name;
  Tensor part;
  Group& group;
  int64_t count;  // rows of the whole
  bool keeps;
  Tensor all = {};  // gathered rows to reuse, valid for `storage` at `version`
  std::weak_ptr<Storage> storage = {};
  uint32_t version = 0;
  bool read = false;  // true once the model has read the parameter

  Tensor operator()() {
    const std::shared_ptr<Storage>& now = part.impl().storage;
    if (!keeps || storage.lock() != now || now->version() != version) all = {};
    const Tensor gathered = gathered_parts(part, 0, group, all);
    if (keeps) all = detach(gathered), storage = now, version = now->version();
    return gathered.size(0) == count ? gathered : narrow(gathered, 0, 0, count);
  }
  Tensor of_model() {
    read = true;
    return (*this)();
  }
};

ShardedParameters::ShardedParameters(nn::Module& model, Group& group, ShardedParametersOptions options)
    : Parts(model, group, true), keep_whole_(options.keep_whole) {
  if (group.size() == 1) return;
  const NoGrad no_grad;
  for (const nn::NamedParameter& named : model.named_parameters()) {
    if (named.tensor.rank() < 2) continue;
    nn::Parameter& p = *model.find_parameter(named.name);
    check(!p.holds_part(), "sharded parameters: '", named.name, "' is a part already");
    const Cut cut{0, {p.size(0)}};
    p.store(part_of(detach(p), cut));
    const auto& rows =
        rows_.emplace_back(std::make_shared<Rows>(Rows{named.name, p, group, cut.sections[0], keep_whole_}));
    p.hold_part([rows](const Tensor&) { return rows->of_model(); });
    add(named.name, p, cut);
    for (const auto& [_, m] : model.named_modules())  // a tied head reads the table, too
      if (auto* head = dynamic_cast<nn::Linear*>(m); head && head->tied() && &head->weight.impl() == &p.impl())
        head->weight.hold_part([rows](const Tensor&) { return rows->of_model(); });
  }
}

void ShardedParameters::check_gradients() const {
  for (const auto& rows : rows_)
    check(rows->read || !rows->part.grad().defined(), "sharded parameters: the model reads the part of '", rows->name,
          "', expected Parameter::operator()");
}

void ShardedParameters::gather() {
  const NoGrad no_grad;
  for (const auto& rows : rows_) rows->keeps = true, (*rows)();
}

void ShardedParameters::release() {
  for (const auto& rows : rows_)
    if (rows->keeps = keep_whole_; !keep_whole_) rows->all = {};
}

}  // namespace isonorm::parallel
