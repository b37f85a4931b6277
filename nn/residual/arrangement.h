// How the sub-layers of a Transformer are arranged along its residual stream: a row of data that makes connections.
#pragma once

#include <string_view>

#include "nn/norm.h"

namespace isonorm::nn {

// The connections of a block's two sub-layers, which may share parameters.
struct BlockConnections {
  std::unique_ptr<Connection> attention, mlp;
};

struct Arrangement {
  const char* name;  // in files and on the command line
  // Those of block `index` of `depth`, counted from 0. norms: options of the block's norms.
  BlockConnections (*block)(const Stream& stream, const StreamNormOptions& norms, int64_t index, int64_t depth);
  // What the head reads through, behind the last block: its join() is not called. norm: options of the final norm.
  std::unique_ptr<Connection> (*last)(const Stream& stream, const StreamNormOptions& norm);
};

constexpr const char* name_of(const Arrangement& a) { return a.name; }
constexpr bool operator==(const Arrangement& a, const Arrangement& b) {
  return std::string_view(a.name) == b.name && a.block == b.block && a.last == b.last;
}

// For Arrangement::block and Arrangement::last, where they need no more than the norms' options: a C each.
template <class C> BlockConnections block_of(const Stream& stream, const StreamNormOptions& norms, int64_t, int64_t) {
  return {std::make_unique<C>(stream, norms), std::make_unique<C>(stream, norms)};
}
template <class C> std::unique_ptr<Connection> last_of(const Stream& stream, const StreamNormOptions& norm) {
  return std::make_unique<C>(stream, norm);
}

}  // namespace isonorm::nn
