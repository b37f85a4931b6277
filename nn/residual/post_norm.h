// Post-normalised residual connections, x <- LayerNorm(x + branch(x)): those of the original Transformer (Vaswani et
// al., 1706.03762). The rows behind the last block are normalised already, so there is no norm before the head, and
// none before the first block either (Xiong et al., 2002.04745, figure 1a).
//
// In the forms that centre (Jiang et al., 2305.14858, appendix B), P (x + F) = P x + P F: the branch's writer is
// centred, and the shortcut's rows are where they are no rows of the stream yet: the embeddings, which the first branch
// reads as they are, and rows behind a learned gain. Such rows have d entries in every form, and what reads them is not
// mapped.
#pragma once

#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// Where a connection stands among those that are post-normalised.
struct PostPlace {
  bool first = false;  // its rows are the embeddings
  bool last = false;   // its result goes to connections that are pre-normalised, which see no mean
};

// read(): x. join(): the normalised sum, in one pass. Throws where there is no norm.
class PostNorm : public Connection {
 public:
  explicit PostNorm(int64_t width, ConnectionOptions options = {}, PostPlace place = {});
  Tensor read(Residual& r) override;
  void join(Residual& r, const Tensor& branch) override;
  bool reads_stream() const override;

 protected:
  // What the branch is added to, as rows of the stream: x <- norm(shortcut(x) + branch(x)).
  virtual Tensor shortcut(const Tensor& x) const;

 private:
  PostPlace place_;
};

// Of the connection of sub-layer i of a block; last: of the last block that is post-normalised.
PostPlace post_place(const BlockPlace& place, int64_t i, bool last = false);

// For Arrangement::block: a C each, made of its place and `more`.
template <class C, class... More>
BlockConnections post_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place,
                            const More&... more) {
  return each_sublayer(place,
                       [&](int64_t i) { return std::make_unique<C>(width, norms, post_place(place, i), more...); });
}

// What the head reads behind post-normalised connections: the stream as it is, whose rows are normalised already;
// `gained`: with a gain.
class PostEnd : public PreNorm {
 public:
  PostEnd(int64_t width, const ConnectionOptions& o)
      : PreNorm(width, {.kind = NormKind::none, .precision = o.precision}), gained_(o.affine) {}
  bool reads_stream() const override { return !gained_; }

 private:
  bool gained_;
};

// For Arrangement::last: such an end.
std::unique_ptr<Connection> bare_last(int64_t width, const ConnectionOptions& norm);

BlockConnections post_ln_block(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);

inline constexpr Arrangement kPostLn{.name = "post_ln", .block = post_ln_block, .last = bare_last, .bare_entry = true};

}  // namespace isonorm::nn
