#include "core/memory/kept.h"

#include <algorithm>

namespace isonorm {
namespace {
thread_local std::vector<Tensor>* held = nullptr;
}

std::vector<Tensor> KeptTensors::get(const Key& key, const std::function<std::vector<Tensor>()>& make) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(last_.begin(), last_.end(), [&](const Kept& k) { return k.key == key; });
  if (at != last_.end()) {
    std::rotate(at, at + 1, last_.end());
  } else {
    Kept made{key, make()};
    if (last_.size() == most_) last_.erase(last_.begin());
    last_.push_back(std::move(made));
  }
  const std::vector<Tensor>& tensors = last_.back().tensors;
  if (held) held->insert(held->end(), tensors.begin(), tensors.end());
  return tensors;
}

HoldKept::HoldKept(std::vector<Tensor>& list) : outer_(held) { held = &list; }
HoldKept::~HoldKept() { held = outer_; }

}  // namespace isonorm
