// Named tensors in order of insertion: what state_dict() gives and files hold. Names are unique.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace isonorm {

class TensorMap {
 public:
  // Throws where the name is there already.
  void add(const std::string& name, const Tensor& tensor) {
    check(index_.emplace(name, entries_.size()).second, "tensor map: the name '", name, "' is there already");
    entries_.emplace_back(name, tensor);
  }
  // nullptr where the name is not there.
  const Tensor* find(std::string_view name) const {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &entries_[at->second].second;
  }
  // Throws where the name is not there.
  const Tensor& at(std::string_view name) const {
    const Tensor* t = find(name);
    check(t != nullptr, "tensor map: there is no tensor '", name, "'");
    return *t;
  }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> entries_;
  std::map<std::string, size_t, std::less<>> index_;  // name to place in entries_
};

}  // namespace isonorm
