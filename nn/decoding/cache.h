// Keys and values of rows that a decoder has seen: what one that goes on a row at a time need not compute again.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

// Of one attention: [batch, heads of keys, time, head_width]; undefined where it has seen nothing.
struct KeyValues {
  Tensor keys, values;

  int64_t time() const { return keys.defined() ? keys.size(2) : 0; }
  // Those of the rows behind, [batch, heads of keys, their number, head_width].
  void append(const Tensor& more_keys, const Tensor& more_values);
};

// Of a block: of self-attention, and of attention to an encoder's rows, which are the same at every step.
struct BlockCache {
  KeyValues own, encoded;
};

// Of a stack of causal blocks: empty at first, handed to every pass over the rows that come next. Whoever changes
// weights in between begins with a new one.
class DecodingCache {
 public:
  int64_t time() const { return blocks_.empty() ? 0 : blocks_[0].own.time(); }  // rows seen
  // Row i of the batch becomes what row rows[i] was: a search goes on with some of its beams, each once or more often.
  void choose(std::span<const int64_t> rows);
  BlockCache& of(size_t block);

 private:
  std::vector<BlockCache> blocks_;
};

}  // namespace isonorm::nn
