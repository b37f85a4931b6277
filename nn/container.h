// Modules made of a list of modules.
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// Runs its children one after the other: nn::Sequential net(nn::Linear(784, 128), nn::Gelu(), nn::Linear(128, 10)).
// Children are named 0, 1, ... A module that has a name is given as std::move(m) or nn::clone(m).
class Sequential : public Module {
 public:
  template <class... Modules> explicit Sequential(Modules&&... modules) {
    (append(std::forward<Modules>(modules)), ...);
  }
  Sequential(Sequential&&) = default;
  Sequential(const Sequential&) = delete;  // give std::move(m), nn::clone(m) or nn::shared(m)

  template <class M> M& append(M&& module) {
    M& child = add(text(children().size()), std::forward<M>(module));
    if constexpr (std::is_same_v<M, std::remove_cvref_t<M>> && Rebuildable<M>)
      rebuilders_.push_back([](const Module& m) -> std::unique_ptr<Module> {
        return std::make_unique<M>(nn::rebuild(static_cast<const M&>(m)));
      });
    else
      rebuilders_.push_back(nullptr);
    return child;
  }

  size_t size() const { return children().size(); }
  // Layer i, counted from the end if i is negative. Throws if there is no such layer.
  Module& operator[](int64_t i) { return *children()[i]; }
  const Module& operator[](int64_t i) const { return *children()[i]; }
  // Returns the child as its class: net.at<nn::Linear>(0).weight. Throws if the child is of another class.
  template <class M> M& at(int64_t i) {
    M* const layer = dynamic_cast<M*>(&(*this)[i]);
    check_class(layer, (*this)[i], typeid(M));
    return *layer;
  }

  // The same layers with initial values. Throws if a child's class is not Rebuildable.
  Sequential rebuild() const;

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  static void check_class(bool is_wanted, const Module& layer, const std::type_info& wanted);

  using Rebuild = std::unique_ptr<Module> (*)(const Module&);
  std::vector<Rebuild> rebuilders_;  // by child; null if its class is not Rebuildable
};

struct ClassOfModules;  // instead of a class that a program left out

// A list of modules of the same type, which its owner runs as it likes. Children are named 0, 1, ...
template <class M = ClassOfModules> class ModuleList : public Module {
  static_assert(!std::is_same_v<M, ClassOfModules>,
                "isonorm: a list has the class of its modules: nn::ModuleList<nn::Linear>");

 public:
  template <class Given = M>
  requires std::same_as<std::remove_cvref_t<Given>, M> M& append(Given&& module) {
    items_.push_back(&add(text(items_.size()), std::forward<Given>(module)));
    return *items_.back();
  }
  size_t size() const { return items_.size(); }
  // Module i, counted from the end if i is negative. Throws if there is no such module.
  M& operator[](int64_t i) { return *items_[i]; }
  const M& operator[](int64_t i) const { return *items_[i]; }
  auto begin() const { return items_.begin(); }  // pointers
  auto end() const { return items_.end(); }

  // A list of the same modules with initial values.
  ModuleList rebuild() const requires Rebuildable<M> {
    ModuleList made;
    for (const M* m : items_) made.append(nn::rebuild(*m));
    return made;
  }

 private:
  CheckedVector<M*> items_;
};

}  // namespace isonorm::nn
