// Internal: the results of a forward and their gradients, recorded to find where two models part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivalence/causes/trial.h"

namespace isonorm::equivalence {

inline constexpr int kTraceControls = 2;

// The finite entries of a tensor in order of size, and how many others there are.
struct Entries {
  std::vector<double> sorted;
  size_t others = 0;
  double largest = 0, norm = 0;

  Entries() = default;
  explicit Entries(const Tensor& x);
  bool varies() const { return sorted.size() > 1 && sorted.front() < sorted.back(); }
  bool fits(const Entries& o) const { return sorted.size() == o.sorted.size() && others == o.others; }
  // The largest difference between the sorted entries and `by` times another tensor's, relative to the largest.
  double distance(const Entries& o, double by = 1) const;
  bool within(const Entries& o, double tolerance) const;
};

// A recorded result.
struct Traced {
  std::string op, path;
  Dims shape;
  Tensor result;  // in the graph
  Entries value;
  std::vector<size_t> from;        // the results that it was computed from
  std::vector<std::string> reads;  // the parameters
  std::string previous;            // the layer or parameter before it
  std::optional<Entries> gradient = {};
  double moved = 0, gradient_moved = 0;  // how far controls move it

  // "`linear` [4, 8] of q.weight in q"; of a result that is no layer's and reads no parameter also the layer before it.
  std::string name() const;
};

struct Trace {
  std::vector<Traced> results;
  size_t loss = 0;  // the index of the loss
  bool complete = true;
};

// The results of a forward on the trial's batch, with `gradients` their gradients, too. parameters: of the model, whose
// names results may read. control: the seed that moves every result by an ulp; 0: no move.
Trace trace(nn::Module& model, const std::vector<streams::NamedParameter>& parameters, const Trial& t, bool gradients,
            uint64_t control = 0);

// Notes in A's trace how far kTraceControls controls move its results and gradients. False if a control does not run
// the same ops.
bool note_controls(Trial& t, Trace& a, bool gradients);

}  // namespace isonorm::equivalence
