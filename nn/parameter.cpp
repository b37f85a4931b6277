#include "nn/parameter.h"

#include <algorithm>
#include <utility>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "core/packing.h"
#include "core/view.h"

namespace isonorm::nn {

void replace_tensor(const Tensor& x, const Tensor& value) {
  const std::shared_ptr<autograd::Node> leaf = x.impl().node;
  const bool on = requires_grad(x);
  *x.handle() = *value.handle();
  if (leaf) require_grad(x, on).impl().node->hooks = leaf->hooks;
}

Parameter::Parameter(const Tensor& stored) : Tensor(stored), seen_(std::make_shared<Seen>()) {}

void Parameter::store(const Tensor& value) const { replace_tensor(*this, detached::clone(value)); }

Tensor Parameter::operator()() const {
  if (const Tensor* k = kept()) return *k;
  const Parametrisation* p = parametrisation();
  if (!p) return whole();
  seen_->asked = true;
  return (*p)(whole());
}

void Parameter::hold_part(std::function<Tensor(const Tensor& part)> whole) const { seen_->whole = std::move(whole); }

void Parameter::parametrize(std::shared_ptr<const Parametrisation> parametrisation) {
  keep(false);
  if (!seen_) seen_ = std::make_shared<Seen>();
  seen_->by = std::move(parametrisation), seen_->asked = false;
}

void Parameter::keep(bool on, bool packed) {
  if (!seen_) return;
  if (std::exchange(seen_->packed, false)) keep_packed(seen_->kept, false);
  seen_->kept = {}, seen_->sources.clear();
  if (!on) return;
  Tensor value = (*this)();
  if (!value.defined()) return;
  if (packed) keep_packed(value), seen_->packed = true;
  std::vector<Tensor> from = seen_->by ? seen_->by->reads() : std::vector<Tensor>();
  if (defined()) from.push_back(*this);
  for (const Tensor& t : from) seen_->sources.push_back({t, t.impl().storage, t.impl().storage->version()});
  seen_->kept = std::move(value);
}

const Tensor* Parameter::kept() const {
  if (!seen_ || !seen_->kept.defined() || grad_enabled()) return nullptr;
  const bool same = std::ranges::all_of(seen_->sources, [](const Source& s) {
    const std::shared_ptr<Storage> then = s.storage.lock();
    return then && then == s.tensor.impl().storage && then->version() == s.version;
  });
  return same ? &seen_->kept : nullptr;
}

}  // namespace isonorm::nn
