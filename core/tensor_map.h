// Named tensors in order of insertion, as state_dict() returns them and files hold them. Names are unique.
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
  // Throws if the map has the name already.
  void add(const std::string& name, const Tensor& tensor);
  // nullptr if the map does not have the name.
  const Tensor* find(std::string_view name) const;
  // Throws if the map does not have the name.
  const Tensor& at(std::string_view name) const;
  // The tensors whose names begin with `prefix`, without the prefix: below("encoder.") of a model's state is the state
  // of its encoder.
  TensorMap below(std::string_view prefix) const;
  // True for the tensors of a PyTorch file (io/load_state.h) and of nn::to_torch(), whose convolutions have another
  // layout. below(), nn::clone() and safetensors files keep this flag.
  bool is_torch() const { return is_torch_; }
  void set_torch(bool on) { is_torch_ = on; }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<std::pair<std::string, Tensor>> entries_;
  std::map<std::string, size_t, std::less<>> index_;  // position in entries_ by name
  bool is_torch_ = false;
};

}  // namespace isonorm
