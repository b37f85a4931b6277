// Layers without initial values, for models whose values are loaded anyway.
#pragma once

namespace isonorm::nn {

// While it lives, the functions of nn::init (nn/init.h) draw nothing in this thread: layers of this library are made
// without their random initial values, which are NaN until they are loaded. A value that is never loaded shows in the
// first loss. Ones and zeros, for example in norms and running statistics, are set. The default generator does not
// move. nn::clone, nn::shared and training::load_model do so themselves (torch.nn.utils.skip_init).
//
//   const auto make = [] {
//     const nn::SkipInit skip;
//     return Net();
//   };
//   Net net = make();
//   net.load_state_dict(load_safetensors("net.safetensors"));
class SkipInit {
 public:
  // on = false: values are drawn, also within another SkipInit.
  [[nodiscard]] explicit SkipInit(bool on = true);
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;

  static bool is_on();  // in this thread

 private:
  bool before_;
};

}  // namespace isonorm::nn
