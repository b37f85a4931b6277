// How the sub-layers of a Transformer are arranged along its residual stream: a row of data that makes connections.
#pragma once

#include <string_view>

#include "nn/residual/connection.h"

namespace isonorm::nn {

// A stack of blocks is a model's only one, or one of the two of an encoder-decoder (Vaswani et al., 1706.03762); a
// decoder's blocks have a sub-layer more between the two others, which attends to the encoder's rows.
enum class Stack { alone, encoder, decoder };

struct BlockPlace {
  int64_t index = 0, depth = 1;  // counted from 0; blocks of the stack
  Stack stack = Stack::alone;
  int64_t other_depth = 0;  // blocks of the other stack, where there is one

  int64_t sublayers() const { return stack == Stack::decoder ? 3 : 2; }
};

// The connections of a block's sub-layers, which may share parameters.
struct BlockConnections {
  std::unique_ptr<Connection> attention, mlp;
  std::unique_ptr<Connection> cross = {};  // of a decoder's block
};

// The matrices of attention [out, in], to be written to.
struct AttentionWeights {
  Tensor query, key, value, output;
};
// Those of a block. mlp: fc1, the gate of swiglu, fc2.
struct BlockWeights {
  AttentionWeights attention;
  std::vector<Tensor> mlp;
  std::optional<AttentionWeights> cross = {};  // of a decoder's block
};

struct Arrangement {
  const char* name;  // in files and on the command line
  // Those of the block at `place`. norms: options of the block's norms.
  BlockConnections (*block)(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
  // What the head reads through, behind the last block: its join() is not called. norm: options of the final norm.
  std::unique_ptr<Connection> (*last)(int64_t width, const ConnectionOptions& norm);
  // What belongs to it of the branches: norms before attention's output and the MLP's second map, initial values of a
  // block's matrices (null: those of the layers).
  bool inner_norms = false;
  void (*initialise)(const BlockWeights& weights, const BlockPlace& place) = nullptr;
  // The first branch reads the embeddings as they are, which are no rows of the stream yet: their tables are not mapped.
  bool bare_entry = false;
};

constexpr const char* name_of(const Arrangement& a) { return a.name; }
constexpr bool operator==(const Arrangement& a, const Arrangement& b) {
  return std::string_view(a.name) == b.name && a.block == b.block && a.last == b.last &&
         a.inner_norms == b.inner_norms && a.initialise == b.initialise && a.bare_entry == b.bare_entry;
}

// Throws, as `name`, where there is no such block.
void check_place(const char* name, const BlockPlace& place);

// For Arrangement::initialise: queries and keys by Xavier's normal distribution, the other matrices by `gain` times it,
// those of cross-attention by `cross` times it (Wang et al., 2203.00555, figure 2, and 2210.06423, figure 2; biases
// stay what they are).
void initialise_scaled(const BlockWeights& weights, double gain, double cross = 1);

// The connections of a block's sub-layers, made in their order: make(i) -> std::unique_ptr of a Connection, i from 0.
template <class Make> BlockConnections each_sublayer(const BlockPlace& place, Make&& make) {
  BlockConnections c;
  int64_t i = 0;
  c.attention = make(i++);
  if (place.stack == Stack::decoder) c.cross = make(i++);
  c.mlp = make(i);
  return c;
}

// For Arrangement::block and Arrangement::last, where they need no more than the norms' options: a C each.
template <class C> BlockConnections block_of(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return each_sublayer(place, [&](int64_t) { return std::make_unique<C>(width, norms); });
}
template <class C> std::unique_ptr<Connection> last_of(int64_t width, const ConnectionOptions& norm) {
  return std::make_unique<C>(width, norm);
}

}  // namespace isonorm::nn
