#include "autograd/rounded_masters.h"

#include <map>

#include "autograd/node.h"
#include "core/kernels/copy.h"
#include "core/view.h"

namespace isonorm {
namespace {

thread_local RoundedMasters* current_masters = nullptr;

bool is_master(const TensorImpl& t) { return t.dtype == DType::f32 && t.contiguous && t.node && t.node->is_leaf(); }

}  // namespace

RoundedMasters::RoundedMasters(Masters& masters) : masters_(masters), before_(current_masters) {
  std::map<std::pair<DeviceKind, int>, std::pair<std::vector<Tensor>, std::vector<Tensor>>> by_device;  // to, from
  for (const auto& known : masters_) {
    const std::shared_ptr<TensorImpl> handle = known.lock();
    if (!handle || !is_master(*handle)) continue;
    const Tensor master(handle), rounded = empty(master.shape(), {DType::bf16, master.device()});
    copies_[handle.get()] = {master, rounded, handle->storage->version()};
    auto& [to, from] = by_device[{master.device().kind, master.device().index}];
    to.push_back(rounded), from.push_back(master);
  }
  for (const auto& [_, lists] : by_device)
    kernels::round_each.on(lists.second.front().device(), lists.first, lists.second);
  current_masters = this;
}

RoundedMasters::~RoundedMasters() {
  current_masters = before_;
  masters_.clear();
  for (const auto& [_, copy] : copies_)
    if (copy.read) masters_.push_back(copy.master.handle());
}

Tensor RoundedMasters::take(const Tensor& x) {
  const TensorImpl& t = x.impl();
  if (!is_master(t)) return {};
  const uint32_t version = t.storage->version();
  Copy& copy = copies_[&t];
  if (!copy.rounded.defined() || copy.version != version || copy.rounded.device() != x.device())
    copy = {x, detached::to(x, DType::bf16), version};
  copy.read = true;
  return copy.rounded;
}

Tensor detail::as_rows(const Tensor& parameter, DType rows) {
  if (current_masters && parameter.defined() && rows == DType::bf16)
    if (const Tensor shared = current_masters->take(parameter); shared.defined()) return shared;
  return detached::to(parameter, rows);
}

}  // namespace isonorm
