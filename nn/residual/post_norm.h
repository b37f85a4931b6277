// Post-normalised residual connections, x <- LayerNorm(x + branch(x)), as in the original Transformer (Vaswani et al.,
// 1706.03762). The last block's output is normalised already, so there is no norm before the head, and none before the
// first block (Xiong et al., 2002.04745, figure 1a).
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// The place of a connection among the post-normalised ones.
struct PostPlace {
  bool first = false;  // its rows are the embeddings
  bool last = false;   // its result goes to pre-normalised connections
};

// read(): x. join(): adds and normalises in one pass. The constructor throws if there is no norm.
class PostNorm : public Connection {
 public:
  explicit PostNorm(int64_t width, ConnectionOptions options = {}, PostPlace place = {});
  Tensor read(Residual& r) override;
  void join(Residual& r, const Tensor& branch) override;
  bool reads_residual() const override;

 protected:
  // The summand that is not the branch: x <- norm(shortcut(x) + branch(x)). A projection shortcut for the embeddings,
  // and for rows after a learned gain, else x.
  virtual Tensor shortcut(const Tensor& x) const;

 private:
  PostPlace place_;
};

// The place of sub-layer i's connection in a block. last: the block is the last post-normalised one.
PostPlace post_place(const BlockPlace& place, int64_t i, bool last = false);

// For Arrangement::block: connections of class C, each made of its place and `more`.
template <class C, class... More>
BlockConnections post_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place,
                            const More&... more) {
  return each_sublayer(place,
                       [&](int64_t i) { return std::make_unique<C>(width, norms, post_place(place, i), more...); });
}

// The connection through which the head reads after post-normalised connections: the residual stream itself, because
// its rows are normalised already. `gained`: the norms have a gain.
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

inline constexpr Arrangement kPostLn{
    .name = "post_ln", .block = post_ln_block, .last = bare_last, .reads_embeddings = true};

}  // namespace isonorm::nn
