// Pre-normalised residual connections, x <- x + branch(norm(x)), with a norm before the head (Xiong et al.,
// 2002.04745).
#pragma once

#include "nn/residual/arrangement.h"

namespace isonorm::nn {

// read(): norm(x); adds the pending branch in the same pass. join(): the branch stays pending until the next read().
class PreNorm : public Connection {
 public:
  explicit PreNorm(int64_t width, const ConnectionOptions& options = {}) : Connection(width, options) {}
  Tensor read(Residual& r) override;
  void join(Residual& r, const Tensor& branch) override;
};

extern template BlockConnections block_of<PreNorm>(int64_t, const ConnectionOptions&, const BlockPlace&);
extern template std::unique_ptr<Connection> last_of<PreNorm>(int64_t, const ConnectionOptions&);

inline constexpr Arrangement kPreLn{.name = "pre_ln", .block = block_of<PreNorm>, .last = last_of<PreNorm>};

}  // namespace isonorm::nn
