// Post-normalised residual connections, x <- LayerNorm(x + branch(x)): those of the original Transformer (Vaswani et
// al., 1706.03762). The rows behind the last block are normalised already, so there is no norm before the head, and
// none before the first block either (Xiong et al., 2002.04745, figure 1a).
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// read(): x. join(): the normalised sum, in one pass. Throws where the stream is not that of layer_norm: the other
// forms are coordinates of a pre-normalised model, which Post-LN is not (docs/normalization.md).
class PostNorm : public StreamNorm {
 public:
  explicit PostNorm(const Stream& stream, StreamNormOptions options = {});
  Tensor read(Residual& r) override;
  void join(Residual& r, const Tensor& branch) override;
};

// For Arrangement::last: the head reads the bare stream.
std::unique_ptr<Connection> bare_last(const Stream& stream, const StreamNormOptions& norm);

inline constexpr Arrangement kPostNorm{"post_norm", block_of<PostNorm>, bare_last};

}  // namespace isonorm::nn
