#include "parallel/sharded_parameters.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/shape.h"
#include "parallel/collectives.h"

namespace isonorm::parallel {

ShardedParameters::ShardedParameters(nn::Module& model, distributed::Group& group) : Parts(model, group, true) {
  if (group.size() == 1) return;
  const NoGrad no_grad;
  for (const nn::NamedParameter& named : model.named_parameters()) {
    if (named.tensor.rank() < 2) continue;
    nn::Parameter& p = *model.find_parameter(named.name);
    const int64_t rows = p.size(0);
    const Cut cut{0, {rows}};
    p.store(part_of(detach(p), cut));
    p.hold_part([&group, rows](const Tensor& part) {
      const Tensor all = gathered_parts(part, 0, group);
      return all.size(0) == rows ? all : narrow(all, 0, 0, rows);
    });
    add(named.name, p, cut);
  }
}

}  // namespace isonorm::parallel
