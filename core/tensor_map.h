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
  void add(const std::string& name, const Tensor& tensor);
  // nullptr where the name is not there.
  const Tensor* find(std::string_view name) const;
  // Throws where the name is not there.
  const Tensor& at(std::string_view name) const;
  // The tensors whose names begin with `prefix`, under the rest of their names: below("encoder.") of a model's state is
  // its encoder's.
  TensorMap below(std::string_view prefix) const;
  // True for tensors of a PyTorch file (io/load_state.h) and of nn::to_torch(): convolutions have another layout there.
  // below(), nn::clone() and safetensors files keep this.
  bool is_torch() const { return is_torch_; }
  void set_torch(bool on) { is_torch_ = on; }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> entries_;
  std::map<std::string, size_t, std::less<>> index_;  // name to place in entries_
  bool is_torch_ = false;
};

}  // namespace isonorm
