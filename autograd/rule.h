// The backward rule of a node: any closure over a Flow.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <utility>

#include "core/memory/pool.h"

namespace isonorm {

class Flow;

// A rule made of ops alone, on the tensors of save() and Flow, so that it can be recorded and differentiated itself.
// The floating tensors that it saves must be inputs and outputs of the op, as track() got them. If it calls a kernel,
// it must follow the op's composition while it is recorded (Flow::needs_composition).
template <class F> struct Differentiable {
  F rule;
  bool valid;
};
// valid: false for a call whose rule cannot be differentiated, for example because it keeps a rounded weight.
template <std::invocable<Flow&> F> Differentiable<F> differentiable(F rule, bool valid = true) {
  return {std::move(rule), valid};
}

// Empty until a closure is assigned. A small closure (with about two saved tensors) is stored inside, a larger one in
// the pool.
class Rule {
 public:
  Rule() = default;
  ~Rule() { clear(); }
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  template <std::invocable<Flow&> F> Rule& operator=(F f) {
    set_ = true, differentiable_ = false;
    if constexpr (sizeof(F) > kRoom || alignof(F) > alignof(std::max_align_t)) {
      return *this = [f = pool::make_shared<F>(std::move(f))](Flow& g) { (*f)(g); };
    } else {
      clear();
      new (room_) F(std::move(f));
      call_ = [](void* room, Flow* g) {
        F& closure = *std::launder(static_cast<F*>(room));
        g ? closure(*g) : closure.~F();
      };
      return *this;
    }
  }
  template <class F> Rule& operator=(Differentiable<F> f) {
    *this = std::move(f.rule);
    differentiable_ = f.valid;
    return *this;
  }
  bool is_differentiable() const { return differentiable_; }
  bool is_set() const { return set_; }  // whether a closure was ever assigned, even if cleared since
  void clear() {
    if (call_) std::exchange(call_, nullptr)(room_, nullptr);
  }

  explicit operator bool() const { return call_ != nullptr; }
  void operator()(Flow& g) { call_(room_, &g); }

 private:
  static constexpr size_t kRoom = 64;

  void (*call_)(void* room, Flow* g) = nullptr;  // runs the closure; destroys it if g is null
  bool set_ = false, differentiable_ = false;
  alignas(std::max_align_t) std::byte room_[kRoom];
};

}  // namespace isonorm
