// Why a recorded tensor differs between two programs: known mistakes, each tried by arithmetic on what was recorded.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "equivalence/coordinates/pairs.h"
#include "equivalence/explain/recorded.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// A tensor that differs, and what else is known. Pairs are f64; `reference` is the first program's, A, `value` the second's, B.
struct Evidence {
  Pair pair;
  Recorded what;
  double tolerance = 0;  // relative to pair.scale: below it the two are the same
  double eps = 0x1p-52;  // of the coarser dtype
  int dim = -1;          // the stream's axis; -1: not known
  // Another recorded tensor of both programs; nothing where it is not there.
  std::function<std::optional<Pair>(const Recorded&)> find = [](const Recorded&) { return std::nullopt; };
  // The output that was recorded last before this tensor and has its shape.
  std::function<std::optional<Pair>()> previous = [] { return std::nullopt; };
  // All recorded gradients of the step, this one among them.
  std::function<std::vector<Pair>()> gradients = [] { return std::vector<Pair>(); };
};

// What a hypothesis makes of the evidence.
struct Tried {
  // What differs: relative, of B from A, or of what B computed from what A would have computed of the same.
  double off = 0;
  double left = 0;    // of it where the hypothesis holds
  std::string found;  // one sentence with its number

  // Whether the difference vanishes: what is left is within the tolerance, and not more than a quarter.
  bool explains(double tolerance) const { return left <= tolerance && left <= off / 4; }
};

struct Hypothesis {
  const char* name;
  const char* needs;  // what must be recorded
  // Nothing where that is not there, or B does the same as A.
  std::optional<Tried> (*test)(const Evidence&);
};

// The ones with fewer free numbers first.
std::span<const Hypothesis> hypotheses();

struct Explanation {
  const Hypothesis* cause = nullptr;  // null where none explains it
  std::string sentence = {};
  double left = 0;
  std::vector<const char*> tried = {};  // names of those that had what they need
};

// The hypothesis that explains the difference: of several that leave less than the tolerance the first, else the one that leaves
// least. Does not throw for what was recorded: what has a NaN or does not fit is not explained.
Explanation explain(const Evidence& evidence);

}  // namespace isonorm::equivalence
