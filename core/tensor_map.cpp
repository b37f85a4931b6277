#include "core/tensor_map.h"

namespace isonorm {

void TensorMap::add(const std::string& name, const Tensor& tensor) {
  check(index_.emplace(name, entries_.size()).second, "tensor map: the name '", name, "' is there already");
  entries_.emplace_back(name, tensor);
}

const Tensor* TensorMap::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const Tensor& TensorMap::at(std::string_view name) const {
  const Tensor* t = find(name);
  check(t != nullptr, "tensor map: there is no tensor '", name, "'");
  return *t;
}

}  // namespace isonorm
