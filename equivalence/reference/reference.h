// Checks a checkpoint against recorded results of the program that it came from: inputs and outputs of readers and
// writers. It is the only check of a description that does not rely on the description.
#pragma once

#include <limits>

#include "equivalence/judge/judgement.h"
#include "io/lazy_state.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

struct ReferenceFindings {
  int64_t readers = 0, writers = 0;            // in the plan; a writer's bias counts with its weight
  int64_t readers_held = 0, writers_held = 0;  // in the reference
  Deviation furthest = {};  // the output of the entry that uses most of its bound; `what` is its reader or writer
  double share = 0;         // of its bound that this entry uses; infinite for NaN
  // The wrong reading that is hardest to see: its tensor, the reading, and by how much the rows leave its bound (at
  // least; infinite if no other reading fits the shapes). If power is at most 1, that reading would have been accepted,
  // so the description may be wrong, too.
  std::string unseen = {}, reading = {};  // "h.0.attn.c_proj.weight", "with dim 0"
  double power = std::numeric_limits<double>::infinity();
  bool agrees() const;  // false for NaN, like equivalent()
  bool equivalent() const;
};

// Loads a reference file, safetensors or .npz (npy.h), with pairs <name>.input, <name>.output. Throws as the loaders of
// these formats.
TensorMap load_reference(const std::string& path);

// Checks every pair of the reference. <name> is a reader's or writer's weight, or the head of a tied table. x =
// <name>.input [.., n], y = <name>.output [.., m], with rows of any leading dimensions, both in the floating dtype of
// the computation:
//
//   reader            y = A (gain norm(x) + bias) + b, x rows of the stream before the norm
//   writer            y = W x + b, before a layer scale; b is "...bias" if W is "...weight" and both are writers
//   the same, x ids   y = the rows of W with the numbers x [..] (integers), through the table's norm if it has one
//
// The expected y is computed in f64 and compared entry by entry, within the bound of rounding (readings.h). The same is
// done for each wrong reading that fits the shapes and would be converted to something else: along another dim, through
// another norm, without the bias, or with an undeclared bias. Reads the tensors that the reference names, one by one,
// and the norms.
//
// Throws, naming the entry, if a name is of no reader or writer, half of a pair is missing, a dtype or shape does not
// fit, an id is out of range, a value is NaN or infinite, or the reference is empty.
ReferenceFindings check_reference(const LazyState& file, const streams::Plan& plan, const TensorMap& reference);

}  // namespace isonorm::equivalence
