// Modes of the calling thread, like NoGrad (autograd/grad_mode.h) for recording.
#pragma once

#include <utility>

namespace isonorm::nn {

// Sets a mode of this thread while it lives. on = false: switches the mode off, also within another object that
// switches it on. `Mode` is the class that inherits from it.
template <class Mode> class ThreadMode {
 public:
  explicit ThreadMode(bool on) : before_(std::exchange(is_on_, on)) {}
  ~ThreadMode() { is_on_ = before_; }
  ThreadMode(const ThreadMode&) = delete;
  ThreadMode& operator=(const ThreadMode&) = delete;

  static bool is_on() { return is_on_; }  // in this thread

 private:
  static inline thread_local bool is_on_ = false;
  bool before_;
};

// During the lifetime of this object, modules that this thread runs are in evaluation mode: their training() is false,
// whatever train() set. No module is written to, so several threads may evaluate one model at the same time. If a
// backward recomputes a block (TransformerStack::recompute()), the block is in the mode of its forward.
struct EvaluationMode : ThreadMode<EvaluationMode> {
  [[nodiscard]] explicit EvaluationMode(bool on = true) : ThreadMode(on) {}
};

// During the lifetime of this object, the functions of nn::init (nn/init.h) draw nothing in this thread: layers of this
// library are made without their random initial values, which are NaN until they are loaded. A value that is never
// loaded shows in the first loss. Ones and zeros, for example in norms and running statistics, are set. The default
// generator does not move. nn::clone, nn::shared and training::load_model do so themselves (torch.nn.utils.skip_init).
//
//   const auto make = [] {
//     const nn::SkipInit skip;
//     return Net();
//   };
//   Net net = make();
//   net.load_state_dict(load_safetensors("net.safetensors"));
struct SkipInit : ThreadMode<SkipInit> {
  [[nodiscard]] explicit SkipInit(bool on = true) : ThreadMode(on) {}
};

}  // namespace isonorm::nn
