// A checkpoint in pieces that are converted and compared one by one, so that it need not fit into memory: the
// conversion of a slice along the stream depends on no other slice.
#pragma once

#include <algorithm>

#include "io/lazy_state.h"
#include "streams/plan.h"

namespace isonorm::equivalence {

// Tensors that are converted together: a writer and its layer scale; a reader, its bias and its norm's gain and bias; a
// tied table with its layer scale and its norms' gains and biases; or a single tensor: one that does not touch the
// stream, or a gain that no reader reads through.
struct Unit {
  streams::Plan plan;              // plan of these tensors; other norms are listed without gain and bias
  std::vector<std::string> names;  // the tensors that exist; the others belong to the first
  int axis = -1;                   // the axis along which the first is cut: its first axis that is not the stream's
  int64_t slices = 1, block = 1;   // its size along the axis, and the size of a piece
  std::string bias = {};           // the bias that is cut with it, along dimension 0; empty if there is none
};

// Maximum number of elements in a piece (2 MiB in f64). A piece of a single slice may have more.
inline constexpr int64_t kPieceElements = int64_t{1} << 18;

// Divides a checkpoint that passed check_plan() into units, in the order of its plan.
std::vector<Unit> units_of(const TensorMap& outline, const streams::Plan& plan, int64_t elements = kPieceElements);
// Makes a unit of each tensor of any checkpoint, with the whole plan.
std::vector<Unit> tensors_alone(const TensorMap& outline, const streams::Plan& plan, int64_t elements = kPieceElements);

bool reads(const Unit& unit);
bool writes(const Unit& unit);

// Units of two checkpoints that correspond: units with a common name, and a tied table with the separate head that it
// has in the other checkpoint. All units of a pair are cut alike, or not at all if their sizes differ.
struct UnitPair {
  std::vector<Unit> a, b;
};
std::vector<UnitPair> in_pairs(std::vector<Unit> a, std::vector<Unit> b);
bool reads(const UnitPair& pair);
bool writes(const UnitPair& pair);

// Calls f(i, last) for units or pairs in two passes: with last = false for every unit except pure readers, then with
// last = true for every reader. A tied table is visited twice. Stops and returns false if f returns false.
template <class U, class F> bool writers_first(const std::vector<U>& units, F&& f) {
  for (bool last : {false, true})
    for (size_t i = 0; i < units.size(); ++i)
      if ((last ? reads(units[i]) : writes(units[i]) || !reads(units[i])) && !f(i, last)) return false;
  return true;
}

// Slices [begin, end) of a total of `of` slices.
struct Slices {
  int64_t begin = 0, end = 1, of = 1;
};

struct Piece {
  TensorMap state;
  streams::Plan plan;
  Slices slices = {};
  std::set<std::string> half = {};  // the f16 tensors (LazyState)

  NumberFormat format(const std::string& name) const { return {state.at(name).dtype(), half.contains(name)}; }
};

// Returns `slices` of a unit, or of units that are cut alike, as views of `tensors`. half: the f16 tensors of the
// checkpoint.
Piece piece_of(const std::vector<Unit>& units, const TensorMap& tensors, const Slices& slices,
               const std::set<std::string>& half);

// Calls visit(slices) for each piece of units that are cut alike. Stops and returns false if visit returns false.
template <class F> bool each_piece(const std::vector<Unit>& units, F&& visit) {
  const Unit& u = units.front();
  for (int64_t begin = 0; begin < u.slices; begin += u.block)
    if (!visit(Slices{begin, std::min(begin + u.block, u.slices), u.slices})) return false;
  return true;
}

}  // namespace isonorm::equivalence
