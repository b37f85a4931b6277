// KV cache: the keys and values of tokens that a decoder has seen, so that the next step does not compute them again.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

// The cache of an attention layer: [batch, key heads, time, head_width], undefined if it is empty.
struct KeyValues {
  Tensor keys, values;

  int64_t time() const { return keys.defined() ? keys.size(2) : 0; }
  // Appends the keys and values of new tokens, [batch, key heads, number of tokens, head_width].
  void append(const Tensor& more_keys, const Tensor& more_values);
};

// The caches of a block: self-attention (own), and cross-attention to the encoder's rows, which stay the same
// (encoded).
struct BlockCache {
  KeyValues own, encoded;
};

// The cache of a stack of causal blocks: empty at first, then passed to every forward over the next tokens. Use a new
// one after weights have changed.
class DecodingCache {
 public:
  int64_t time() const { return blocks_.empty() ? 0 : blocks_[0].own.time(); }  // tokens seen
  // Row i of the batch becomes the former row rows[i]: beam search keeps some beams, and some of these several times.
  void choose(std::span<const int64_t> rows);
  BlockCache& of(size_t block);

 private:
  std::vector<BlockCache> blocks_;
};

}  // namespace isonorm::nn
