// Post-normalized residual connections. The last block's output is normalized already, so there is no norm before the
// head, and none before the first block (Xiong et al., 2002.04745, figure 1a).
//   post_ln   x <- LayerNorm(x + branch(x)), as in the original Transformer (Vaswani et al., 1706.03762)
//   mix_ln    Post-LN in the first quarter of the blocks, rounded down, Pre-LN in the others, and a norm before the
//             head (Li et al., 2412.13795, section 3)
//   deepnorm  x <- LayerNorm(alpha x + branch(x)). Values, attention's output and the MLP begin with beta times
//             Xavier's distribution (Wang et al., 2203.00555, section 3 and figure 2).
//
//     blocks                                    alpha                   beta
//     encoder or decoder alone, N               (2N)^(1/4)              (8N)^(-1/4)
//     encoder of N before a decoder of M        0.81 (N^4 M)^(1/16)     0.87 (N^4 M)^(-1/16)
//     decoder of M                              (3M)^(1/4)              (12M)^(-1/4)
//
//   residual  ResiDual: Post-LN, and a second residual stream d <- d + branch(x), the sum of the embeddings and all
//             branches. Only the last norm reads d: the head gets x + LayerNorm(d), with eps 1e-7 (Xie et al.,
//             2304.14802, section 3.1). The paper's code scales embeddings and branches in d by s, with s = 1 except in
//             deep fp16 models (s = 0.05), where d would overflow. Here s = 1: LayerNorm(s d) with eps equals
//             LayerNorm(d) with eps/s^2, and no dtype that trains here has the range of fp16.
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// The place of a connection among the post-normalized ones.
struct PostPlace {
  bool first = false;  // its rows are the embeddings
  bool last = false;   // its result goes to pre-normalised connections
};

// read(): x. join(): x <- norm(alpha x + branch(x)) in one pass. The constructor throws if there is no norm.
class PostNorm : public Connection {
 public:
  explicit PostNorm(int64_t width, ConnectionOptions options = {}, PostPlace place = {}, double alpha = 1);
  Tensor read(Residual& r) override;
  void join(Residual& r, const Tensor& branch) override;
  bool reads_residual() const override;

 protected:
  // The summand that is not the branch: alpha x, after a projection shortcut for the embeddings, and for rows after a
  // learned gain.
  virtual Tensor shortcut(const Tensor& x) const;

 private:
  PostPlace place_;
  double alpha_;
};

// The place of sub-layer i's connection in a block. last: the block is the last post-normalized one.
PostPlace post_place(const BlockPlace& place, int64_t i, bool last = false);

// An Arrangement::block: connections of class C, each made of its place and `more`.
template <class C, class... More>
BlockConnections post_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place,
                            const More&... more) {
  return each_sublayer(place,
                       [&](int64_t i) { return std::make_unique<C>(width, norms, post_place(place, i), more...); });
}

// The connection through which the head reads after post-normalized connections: the residual stream itself, because
// its rows are normalized already. `gained`: the norms have a gain.
class PostEnd : public PreNorm {
 public:
  PostEnd(int64_t width, const ConnectionOptions& o)
      : PreNorm(width, {.kind = NormKind::none, .precision = o.precision}), gained_(o.affine) {}
  bool reads_residual() const override { return !gained_; }

 private:
  bool gained_;
};

// For Arrangement::last: a PostEnd.
std::unique_ptr<Connection> bare_last(int64_t width, const ConnectionOptions& norm);

BlockConnections post_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

// Returns the number of post-normalized blocks of Mix-LN. Throws, naming `name`, if the number is 0, because the model
// would be Pre-LN.
int64_t mix_ln_posts(const char* name, int64_t depth);
BlockConnections mix_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

double deep_norm_alpha(const BlockPlace& place);
double deep_norm_beta(const BlockPlace& place);
void initialise_deep_norm(const BlockWeights& weights, const BlockPlace& place);
BlockConnections deep_norm_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

class DualNorm : public PostNorm {
 public:
  using PostNorm::PostNorm;
  void join(Residual& r, const Tensor& branch) override;
};

class DualEnd : public PreNorm {
 public:
  DualEnd(int64_t width, ConnectionOptions options);
  Tensor read(Residual& r) override;
  // With gains it reads the sum of two norms' rows after their gains.
  bool reads_residual() const override { return !weight.defined(); }
};

BlockConnections residual_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kPostLn{
    .name = "post_ln", .block = post_ln_block, .last = bare_last, .reads_embeddings = true};
inline constexpr Arrangement kMixLn{
    .name = "mix_ln", .block = mix_ln_block, .last = last_of<PreNorm>, .reads_embeddings = true};
inline constexpr Arrangement kDeepNorm{.name = "deepnorm",
                                       .block = deep_norm_block,
                                       .last = bare_last,
                                       .initialise = initialise_deep_norm,
                                       .reads_embeddings = true};
inline constexpr Arrangement kResiDual{
    .name = "residual", .block = residual_block, .last = last_of<DualEnd>, .reads_embeddings = true};

}  // namespace isonorm::nn
