// Modules made of a list of modules.
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// Runs its children one after the other: nn::Sequential net(nn::Linear(784, 128), nn::Gelu(), nn::Linear(128, 10)).
// Children are named 0, 1, ...
class Sequential : public Module {
 public:
  template <class... Modules> explicit Sequential(Modules&&... modules) {
    (append(std::forward<Modules>(modules)), ...);
  }
  Sequential(Sequential&&) = default;

  template <class M> M& append(M&& module) { return add(text(children().size()), std::move(module)); }

 protected:
  Tensor forward(const Tensor& x) override;
};

// A list of modules of one type, which its owner runs as it likes. Children are named 0, 1, ...
template <class M> class ModuleList : public Module {
 public:
  M& append(M&& module) {
    items_.push_back(&add(text(items_.size()), std::move(module)));
    return *items_.back();
  }
  size_t size() const { return items_.size(); }
  // Module i, counted from the end if i is negative. Throws if there is no such module.
  M& operator[](int64_t i) { return *items_[i]; }
  auto begin() const { return items_.begin(); }  // pointers
  auto end() const { return items_.end(); }

 private:
  List<M*> items_;
};

}  // namespace isonorm::nn
