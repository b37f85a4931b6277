// Sandwich-LN, x <- x + norm(branch(norm(x))), with a norm before the head (Ding et al., CogView, 2105.13290, section
// 2.4).
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// The second norm is the child "after". With a learned gain its rows pass a projection before they are added.
class Sandwich : public PreNorm {
 public:
  explicit Sandwich(int64_t width, const ConnectionOptions& options = {});
  void join(Residual& r, const Tensor& branch) override;

 private:
  PreNorm& behind_;
};

extern template BlockConnections block_of<Sandwich>(int64_t, const ConnectionOptions&, const BlockPlace&);

inline constexpr Arrangement kSandwich{.name = "sandwich", .block = block_of<Sandwich>, .last = last_of<PreNorm>};

}  // namespace isonorm::nn
