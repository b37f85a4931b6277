// The arrangement of sub-layers along the residual stream of a Transformer (Pre-LN, Post-LN, ...): a row of data that
// makes the connections.
#pragma once

#include <string_view>

#include "nn/residual/connection.h"

namespace isonorm::nn {

// A stack of blocks is a model's only stack, or a stack of an encoder-decoder (Vaswani et al., 1706.03762). A
// decoder's blocks have a third sub-layer between the other two: cross-attention to the encoder's rows.
enum class Stack { alone, encoder, decoder };

struct BlockPlace {
  int64_t index = 0, depth = 1;  // index counts from 0; depth: number of blocks of the stack
  Stack stack = Stack::alone;
  int64_t other_depth = 0;  // number of blocks of the other stack, if there is one

  int64_t sublayers() const { return stack == Stack::decoder ? 3 : 2; }
};

// The connections of a block's sub-layers, which may share parameters.
struct BlockConnections {
  std::unique_ptr<Connection> attention, mlp;
  std::unique_ptr<Connection> cross = {};  // only in a decoder's block
};

// The weights of attention, [out, in]. Writes to them go to the layers.
struct AttentionWeights {
  Tensor query, key, value, output;
};
// The weights of a block. mlp: fc1, the gate if the activation is swiglu, fc2.
struct BlockWeights {
  AttentionWeights attention;
  std::vector<Tensor> mlp;
  std::optional<AttentionWeights> cross = {};  // only in a decoder's block
};

struct Arrangement {
  const char* name;  // in files and on the command line
  // Makes the connections of the block at `place`. norms: options of the block's norms.
  BlockConnections (*block)(int64_t width, const ConnectionOptions& norms, const BlockPlace& place);
  // Makes the connection through which the head reads after the last block; its join() is not called. norm: options of
  // the final norm.
  std::unique_ptr<Connection> (*last)(int64_t width, const ConnectionOptions& norm);
  // Norms inside the branches (before attention's output map and the MLP's second map), and a function that draws the
  // initial matrices of a block (null: the layers' own distributions).
  bool inner_norms = false;
  void (*initialise)(const BlockWeights& weights, const BlockPlace& place) = nullptr;
  // The first branch reads the embeddings without a norm.
  bool reads_embeddings = false;
};

constexpr const char* name_of(const Arrangement& a) { return a.name; }
constexpr bool operator==(const Arrangement& a, const Arrangement& b) {
  return std::string_view(a.name) == b.name && a.block == b.block && a.last == b.last &&
         a.inner_norms == b.inner_norms && a.initialise == b.initialise && a.reads_embeddings == b.reads_embeddings;
}

// Throws, naming `name`, if there is no such block.
void check_place(const char* name, const BlockPlace& place);

// An Arrangement::initialise: queries and keys from Xavier's normal distribution, the other matrices from `gain` times
// it, and values and outputs of cross-attention from `cross` times it (Wang et al., 2203.00555, figure 2, and
// 2210.06423, figure 2). Biases keep their values.
void initialise_scaled(const BlockWeights& weights, double gain, double cross = 1);

// Makes the connections of a block's sub-layers in order: make(i) returns a std::unique_ptr of a Connection, i from 0.
template <class Make> BlockConnections each_sublayer(const BlockPlace& place, Make&& make) {
  BlockConnections c;
  int64_t i = 0;
  c.attention = make(i++);
  if (place.stack == Stack::decoder) c.cross = make(i++);
  c.mlp = make(i);
  return c;
}

// An Arrangement::block or Arrangement::last, if it needs only the norms' options: each connection is a C.
template <class C> BlockConnections block_of(int64_t width, const ConnectionOptions& norms, const BlockPlace& place) {
  return each_sublayer(place, [&](int64_t) { return std::make_unique<C>(width, norms); });
}
template <class C> std::unique_ptr<Connection> last_of(int64_t width, const ConnectionOptions& norm) {
  return std::make_unique<C>(width, norm);
}

}  // namespace isonorm::nn
