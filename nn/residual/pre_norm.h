// Pre-normalized residual connections, with a norm before the head (Xiong et al., 2002.04745).
//   pre_ln              x <- x + branch(norm(x))
//   layer_norm_scaling  the same, with norms in block l = 1, 2, ... that are multiplied by 1/sqrt(l) (Sun et al.,
//                       2502.05795, equation 7). As in the paper, the factor is fixed, with or without a gain. In the
//                       released code of GPAS it is the initial value of a learned gain:
//                       TransformerOptions::scaled_gains with pre_ln.
//   sandwich            x <- x + norm(branch(norm(x))) (Sandwich-LN: Ding et al., CogView, 2105.13290, section 2.4)
//   sub_ln              pre_ln with an additional LayerNorm in each branch: of the concatenated heads before
//                       self-attention's output map, and of the hidden entries before the MLP's second map (Wang et
//                       al., Foundation Transformers, 2210.06423, figure 2). Values, attention's output and the MLP
//                       begin with Xavier's distribution times sub_ln_gain().
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

// The second norm is the child "after". With a learned gain its rows pass a projection before they are added.
class Sandwich : public PreNorm {
 public:
  explicit Sandwich(int64_t width, const ConnectionOptions& options = {});
  void join(Residual& r, const Tensor& branch) override;

 private:
  PreNorm& behind_;
};

extern template BlockConnections block_of<PreNorm>(int64_t, const ConnectionOptions&, const BlockPlace&);
extern template BlockConnections block_of<Sandwich>(int64_t, const ConnectionOptions&, const BlockPlace&);
extern template std::unique_ptr<Connection> last_of<PreNorm>(int64_t, const ConnectionOptions&);

// The norms of LayerNorm Scaling in the block at `place`. Throws, naming `name`, if there is no such block.
ConnectionOptions scaled_norms(const char* name, ConnectionOptions norms, const BlockPlace& place);
BlockConnections scaled_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

// Encoder or decoder alone, N blocks: sqrt(ln 2N). Encoder of N before a decoder of M: sqrt(ln(3M) ln(2N) / 3). Decoder
// of M: sqrt(ln 3M), its cross-attention 1.
double sub_ln_gain(const BlockPlace& place);
void initialise_sub_ln(const BlockWeights& weights, const BlockPlace& place);

inline constexpr Arrangement kPreLn{.name = "pre_ln", .block = block_of<PreNorm>, .last = last_of<PreNorm>};
inline constexpr Arrangement kLayerNormScaling{
    .name = "layer_norm_scaling", .block = scaled_block, .last = last_of<PreNorm>};
inline constexpr Arrangement kSandwich{.name = "sandwich", .block = block_of<Sandwich>, .last = last_of<PreNorm>};
inline constexpr Arrangement kSubLn{.name = "sub_ln",
                                    .block = block_of<PreNorm>,
                                    .last = last_of<PreNorm>,
                                    .inner_norms = true,
                                    .initialise = initialise_sub_ln};

}  // namespace isonorm::nn
