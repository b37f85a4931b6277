// How the sub-layers of a Transformer are arranged along its residual stream: a row of data that makes connections.
#pragma once

#include <string_view>

#include "nn/norm.h"

namespace isonorm::nn {

// The connections of a block's two sub-layers, which may share parameters.
struct BlockConnections {
  std::unique_ptr<Connection> attention, mlp;
};

// The matrices of a block [out, in], to be written to: of queries, keys, values and attention's output, and of the MLP
// (fc1, the gate of swiglu, fc2).
struct BlockWeights {
  Tensor query, key, value, output;
  std::vector<Tensor> mlp;
};

struct Arrangement {
  const char* name;  // in files and on the command line
  // Those of block `index` of `depth`, counted from 0. norms: options of the block's norms.
  BlockConnections (*block)(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth);
  // What the head reads through, behind the last block: its join() is not called. norm: options of the final norm.
  std::unique_ptr<Connection> (*last)(const Stream& stream, const StreamNormOptions& norm);
  // What belongs to it of the branches: norms before attention's output and the MLP's second map, initial values of a
  // block's matrices (null: those of the layers).
  bool inner_norms = false;
  void (*initialise)(const BlockWeights& weights, int64_t depth) = nullptr;
  // The first branch reads the embeddings as they are, which are no rows of the stream yet: their tables are not mapped.
  bool bare_entry = false;
};

constexpr const char* name_of(const Arrangement& a) { return a.name; }
constexpr bool operator==(const Arrangement& a, const Arrangement& b) {
  return std::string_view(a.name) == b.name && a.block == b.block && a.last == b.last &&
         a.inner_norms == b.inner_norms && a.initialise == b.initialise && a.bare_entry == b.bare_entry;
}

// Throws, as `name`, where there is no block `index` among `depth`.
void check_place(const char* name, int64_t index, int64_t depth);

// For Arrangement::initialise: queries and keys by Xavier's normal distribution, the other matrices by `gain` times it
// (Wang et al., 2203.00555, figure 2, and 2210.06423, figure 2; biases stay what they are).
void initialise_scaled(const BlockWeights& weights, double gain);

// For Arrangement::block and Arrangement::last, where they need no more than the norms' options: a C each.
template <class C> BlockConnections block_of(const Stream& stream, const StreamNormOptions& norms, int64_t, int64_t) {
  return {std::make_unique<C>(stream, norms), std::make_unique<C>(stream, norms)};
}
template <class C> std::unique_ptr<Connection> last_of(const Stream& stream, const StreamNormOptions& norm) {
  return std::make_unique<C>(stream, norm);
}

}  // namespace isonorm::nn
