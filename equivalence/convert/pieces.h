// A checkpoint in pieces that are converted and compared one by one, so that it need not fit into memory: what a
// conversion does to a slice along the stream depends on no other slice.
#pragma once

#include "streams/placement.h"
#include "io/lazy_state.h"

namespace isonorm::equivalence {

// Tensors that belong together: a writer and its layer scale; a reader, its bias and its norm's gain and bias; a tied
// table, its norm's and its layer scale; or one that does not touch the stream.
struct Unit {
  streams::Placement layout;       // of these tensors alone; other norms are there without gain and bias
  std::vector<std::string> names;  // of those that are there; the first is what the others belong to
  int axis = -1;                   // of the first: what it is cut along, its first axis that is not the stream's
  int64_t slices = 1, block = 1;   // its size along the axis, and of a piece
  int64_t rows = 1;                // of a writer: slices along the stream in one of those
  std::string bias = {};           // that is cut with it, along dimension 0; empty where there is none
};

// The units of a checkpoint that check_layout() passes, in the order of its layout. `elements`: of a piece, at most,
// where one slice has no more.
std::vector<Unit> units_of(const TensorMap& outline, const streams::Placement& layout, int64_t elements);

struct Piece {
  TensorMap state;
  streams::Placement layout;
};

// Slices [begin, end) of a unit, as views of its tensors.
Piece piece_of(const Unit& unit, const TensorMap& tensors, int64_t begin, int64_t end);

}  // namespace isonorm::equivalence
