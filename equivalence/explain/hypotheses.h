// The reason why a recorded tensor differs between two programs: known mistakes, each tested by arithmetic on recorded
// values.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "equivalence/judge/pairs.h"
#include "equivalence/explain/recorded.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// A tensor that differs, and the other recorded values. Pairs are f64; `reference` is the first program's (A), `value`
// the second's (B).
struct Evidence {
  Pair pair;
  Recorded what;
  double tolerance = 0;  // relative to pair.scale: below it the two are the same
  double eps = 0x1p-52;  // of the coarser dtype
  int dim = -1;          // the stream's axis; -1: not known
  // Another recorded tensor of both programs; nothing if it was not recorded.
  std::function<std::optional<Pair>(const Recorded&)> find = [](const Recorded&) { return std::nullopt; };
  // The output that was recorded last before this tensor and has its shape.
  std::function<std::optional<Pair>()> previous = [] { return std::nullopt; };
  // All recorded gradients of the step, this one among them.
  std::function<std::vector<Pair>()> gradients = [] { return std::vector<Pair>(); };
};

// The result of testing a hypothesis.
struct Tried {
  // The relative difference: of B from A, or of B's result from the result that A would have computed from the same
  // inputs.
  double off = 0;
  double left = 0;    // the difference that remains if the hypothesis holds
  std::string found;  // one sentence with its number

  // True if the difference vanishes: the rest is within the tolerance, and at most a quarter of the difference.
  bool explains(double tolerance) const { return left <= tolerance && left <= off / 4; }
};

struct Hypothesis {
  const char* name;
  const char* needs;  // what must be recorded
  // Nothing if that was not recorded, or if B does the same as A.
  std::optional<Tried> (*test)(const Evidence&);
};

// Hypotheses with fewer free numbers come first.
std::span<const Hypothesis> hypotheses();

struct Explanation {
  const Hypothesis* cause = nullptr;  // null if none explains it
  std::string sentence = {};
  double left = 0;
  std::vector<const char*> tried = {};  // names of the hypotheses whose inputs were recorded
};

// The hypothesis that explains the difference: the first that leaves less than the tolerance, else the hypothesis that
// leaves least. Recorded values never make it throw: tensors that have a NaN or do not fit are not explained.
Explanation explain(const Evidence& evidence);

}  // namespace isonorm::equivalence
