// A checkpoint in pieces that are converted and compared one by one, so that it need not fit into memory: what a
// conversion does to a slice along the stream depends on no other slice.
#pragma once

#include <algorithm>

#include "io/lazy_state.h"
#include "streams/placement.h"

namespace isonorm::equivalence {

// Tensors that belong together: a writer and its layer scale; a reader, its bias and its norm's gain and bias; a tied
// table, its norm's and its layer scale; or a tensor alone: one that does not touch the stream, or a gain that nobody reads
// through.
struct Unit {
  streams::Placement layout;       // of these tensors alone; other norms are there without gain and bias
  std::vector<std::string> names;  // of those that are there; the first is what the others belong to
  int axis = -1;                   // of the first: what it is cut along, its first axis that is not the stream's
  int64_t slices = 1, block = 1;   // its size along the axis, and of a piece
  std::string bias = {};           // that is cut with it, along dimension 0; empty where there is none
};

// Of a piece, at most, where one slice has no more: some MB in f64.
inline constexpr int64_t kPieceElements = int64_t{1} << 18;

// The units of a checkpoint that check_layout() passes, in the order of its layout.
std::vector<Unit> units_of(const TensorMap& outline, const streams::Placement& layout,
                           int64_t elements = kPieceElements);
// Each tensor of any checkpoint alone, with the whole layout.
std::vector<Unit> tensors_alone(const TensorMap& outline, const streams::Placement& layout,
                                int64_t elements = kPieceElements);

bool reads(const Unit& unit);
bool writes(const Unit& unit);

// Units of two checkpoints that become one another: units of one name, and a tied table with the head that it may be in the
// other. All are cut alike, or not at all where they are not of one size.
struct UnitPair {
  std::vector<Unit> a, b;
};
std::vector<UnitPair> in_pairs(std::vector<Unit> a, std::vector<Unit> b);
bool reads(const UnitPair& pair);
bool writes(const UnitPair& pair);

// Calls f(i, last) for units or pairs of them: first all but those that only read, then, with `last`, all that read, so a tied
// table twice. Until f gives false; says whether it never did.
template <class U, class F> bool writers_first(const std::vector<U>& units, F&& f) {
  for (bool last : {false, true})
    for (size_t i = 0; i < units.size(); ++i)
      if ((last ? reads(units[i]) : writes(units[i]) || !reads(units[i])) && !f(i, last)) return false;
  return true;
}

// Slices [begin, end) of `of`.
struct Slices {
  int64_t begin = 0, end = 1, of = 1;
};

struct Piece {
  TensorMap state;
  streams::Placement layout;
  Slices slices = {};
  std::set<std::string> half = {};  // of its tensors (LazyState)

  NumberFormat format(const std::string& name) const { return {state.at(name).dtype(), half.contains(name)}; }
};

// Slices of a unit, or of units that are cut alike, as views of tensors; half: of all.
Piece piece_of(const std::vector<Unit>& units, const TensorMap& tensors, const Slices& slices,
               const std::set<std::string>& half);

// Calls visit(slices) for one piece after another of units that are cut alike, until it gives false; says whether it never did.
template <class F> bool each_piece(const std::vector<Unit>& units, F&& visit) {
  const Unit& u = units.front();
  for (int64_t begin = 0; begin < u.slices; begin += u.block)
    if (!visit(Slices{begin, std::min(begin + u.block, u.slices), u.slices})) return false;
  return true;
}

}  // namespace isonorm::equivalence
