// A checkpoint held to what the program computed that it came from: rows of the stream as its readers saw them, and
// what its writers made of theirs. It is the one check of a description that does not believe the description.
#pragma once

#include <limits>

#include "streams/placement.h"
#include "io/lazy_state.h"

namespace isonorm::equivalence {

struct ReferenceFindings {
  int64_t readers = 0, writers = 0;            // that the layout has; a writer's bias counts with its weight
  int64_t readers_held = 0, writers_held = 0;  // that the reference has
  // The entry that uses most of its bound.
  std::string tensor = {};          // its reader or writer
  double deviation = 0, bound = 0;  // of it, relative to the largest entry of that output
  double share = 0;                 // deviation / bound; infinite for NaN
  // The wrong reading that these rows show least: of what, which, and the share of the bound that shows it (at least;
  // infinite where no other reading fits the shapes). At most 1: it would have been taken for right, and then so may
  // have been the description.
  std::string unseen = {}, reading = {};  // "h.0.attn.c_proj.weight", "with dim 0"
  double power = std::numeric_limits<double>::infinity();
  bool agrees() const;  // false for NaN, like same()
  bool same() const;
};

// The pairs <name>.input, <name>.output of the file: safetensors or .npz (npz.h). Throws as their readers.
TensorMap load_reference(const std::string& path);

// With <name> a reader's or writer's weight, or the head's of a tied table; x = <name>.input [.., n], y = <name>.output
// [.., m], rows of any leading dimensions, both of one floating dtype, in which they were computed:
//
//   reader            y = A (gain norm(x) + bias) + b, x rows of the stream before the norm
//   writer            y = W x + b, before a layer scale; b is "...bias" where W is "...weight" and both are writers
//   the same, x ids   y = the rows of W that the integers x [..] name, through the norm behind the table where one is
//
// is computed in f64 and compared entry by entry with what rounding explains (reference.cpp). Then the same with each
// wrong reading that fits the shapes and would convert to something else: along another dim, through another norm,
// without the bias or with one that is not declared. Reads the tensors that the reference names, one by one, and the
// norms. Throws, naming the entry, where a name is of no reader or writer, one of a pair is
// missing, a dtype or shape does not fit, an id is no row, something is NaN or infinite, or nothing is there.
ReferenceFindings check_reference(const LazyState& file, const streams::Placement& layout, const TensorMap& reference);

}  // namespace isonorm::equivalence
