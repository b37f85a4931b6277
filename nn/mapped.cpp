#include "nn/mapped.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/packing.h"

namespace isonorm::nn {

void KeptMapping::keep(Mapped mapped, const std::vector<Tensor>& parameters) {
  let_go();
  mapped_ = std::move(mapped);
  keep_packed(mapped_.weight);
  for (const Tensor& p : parameters) sources_.push_back({p, p.impl().storage, p.impl().storage->version()});
}

void KeptMapping::let_go() {
  if (mapped_.weight.defined()) keep_packed(mapped_.weight, false);
  mapped_ = {};
  sources_.clear();
}

const Mapped* KeptMapping::find() const {
  if (!mapped_.weight.defined() || grad_enabled()) return nullptr;
  const bool same = std::all_of(sources_.begin(), sources_.end(), [](const Source& s) {
    const std::shared_ptr<Storage> then = s.storage.lock();
    return then && then == s.parameter.impl().storage && then->version() == s.version;
  });
  return same ? &mapped_ : nullptr;
}

}  // namespace isonorm::nn
