// Models on a residual stream in other coordinates: which layers write to it and which read from it, and what the
// coordinates make of their parameters and norms (the table of streams/stream.h). Layers know nothing of that.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "nn/norm.h"
#include "streams/stream.h"

namespace isonorm::streams {

// The roles of a model's layers, by patterns of their paths (core/system/name_pattern.h):
//
//   Layout().writes("token").writes("blocks.*.attn.proj").reads("blocks.*.attn.qkv", "blocks.*.norm1")
class Layout {
 public:
  // The output of these is added to the stream: Linear, BranchOutput, the rows of an Embedding, or a parameter, along its
  // last dimension.
  Layout& writes(const std::string& pattern);
  // The input of these Linear is what the norm gives, in whose path a star is what it is in that of the reader.
  Layout& reads(const std::string& pattern, const std::string& norm);
  // The first branch reads the embeddings as they are: tables are no writers, and a mapped table cannot be a head's.
  Layout& bare_entry();
  // What `child` says of the module at `path`.
  Layout& with(const std::string& path, const Layout& child);

 private:
  friend void parametrize(nn::Module& model, const Layout& layout, const Stream& stream);
  std::vector<std::string> writers_;
  std::vector<std::pair<std::string, std::string>> readers_;
  bool bare_entry_ = false;
};

// Has the model compute its function on `stream`: writers and readers are mapped, norms change their formula, gains go
// where they can. A model of raw storage may be put on another stream by the same layout. With mapped storage the parameters
// are mapped here, once. Throws where a pattern meets no layer, a layer meets two, is of another width or has a
// parametrisation of its own, where a norm sees the mean that a form takes away, and where the stream's storage cannot hold
// the function (docs/normalization.md).
void parametrize(nn::Module& model, const Layout& layout, const Stream& stream);

// A parameter and how it touches the stream that its model was put on: neutral, where that is none.
struct NamedParameter : nn::NamedParameter {
  Role role = Role::neutral;
  int stream_dim = 0;  // of writers and readers, the dimension that is the stream's axis
};
// module.named_parameters() with their roles.
std::vector<NamedParameter> named_parameters(const nn::Module& module);

// The norm whose rows a parameter reads; null where it reads none.
const nn::Norm* read_through(const nn::Parameter& parameter);
// The stream that a model was put on; null where it was put on none.
const Stream* stream_of(const nn::Module& model);

}  // namespace isonorm::streams
