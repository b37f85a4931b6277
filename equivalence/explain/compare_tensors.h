// Two sets of named tensors, activations, gradients or weights, from whatever program wrote them: are they the same through a
// parameter map? Where they are not: which is the first that differs, and what explains it?
//
//   const auto r = equivalence::compare_tensors(load_safetensors("torch.safetensors"),
//                                               load_safetensors("ours.safetensors"), map);
//   std::puts(r.message().c_str());
//   // different: fc.weight[3, 4] is 0.25, in the reference 0.5: 5.0e-01 of the largest entry of its tensor, the
//   // tolerance is 1.0e-10 (1 of 42 tensors differs)
//
// Names say what a tensor is (equivalence/explain/recorded.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivalence/coordinates/parameter_map.h"
#include "equivalence/coordinates/pairs.h"
#include "equivalence/explain/recorded.h"
#include "equivalence/lockstep/result.h"
#include "io/lazy_state.h"
#include "reports/document.h"

namespace isonorm::equivalence {

struct CompareTensorsOptions {
  // Of weights M w_A is compared with w_B; of gradients g_A with M* g_B. Gradients are what is called so; with this flag all
  // parameters.
  bool gradients = false;
  // Largest |difference| relative to the largest entry of the tensor in A. If not set: 3e-2 if A's or B's tensor is
  // bf16, else 4e-3 if one is F16, else 1e-4 if one is f32, else 1e-10. Differences in entries below that share of the
  // largest entry are not seen. Two integer tensors must be equal at any tolerance.
  std::optional<double> tolerance = {};
  // What A's program gives when rounding alone is another: each with A's names. Where there are some, the tolerance of a
  // tensor of floats is what the criterion (criterion.h) allows beside them: 30 times the farthest of them, and 64 eps of
  // the coarser dtype. One that is so wide that it would hide a real difference (largest_bound()) is undecided, and so is
  // all where none of them differs from A.
  std::vector<LazyState> controls = {};
  // Gradients that are zero in exact arithmetic, such as those of key biases: names in A, with the * of parameter maps.
  // What the files hold of them is rounding noise: the same where it lies, in both, below 1000 eps (at most 1 %) of the
  // largest gradient of all. Elsewhere the name changes nothing.
  std::vector<std::string> noise = {};
  // In which A's tensors are compared; where it has no names, A's own order.
  ExecutionOrder order = {};
  // What writes to each stream, for the hypotheses about a difference.
  std::vector<streams::Layout> layouts = {};
};

struct TensorsComparison {
  // undecided: nothing differs that could be compared, and something could not.
  Verdict verdict = Verdict::different;
  bool identical = false;          // same, and every row is
  std::string reason, likely;      // one sentence; what explains the difference, where a hypothesis does (hypotheses.h)
  std::vector<std::string> tried;  // hypotheses of which everything was there that they need
  double resolution = 0;           // where it is the same: the largest of the rows
  std::optional<EntryPlace> first;  // of the first tensor that differs the entry that is furthest off
  std::string agrees, furthest;     // the last tensor that agrees before that one; the one that deviates most
  std::string order;                // which it is that "first" speaks of; empty: A's own

  struct Row {
    std::string name, partner;  // in A and in B
    Dims shape;                 // of what was compared
    double deviation = 0, tolerance = 0;
    double control = 0;        // what the farthest control deviates by
    double resolution = 0;     // a factor of 1 + so much of all of it would have shown; 0: any, or it is 0 itself
    std::string problem = {};  // why it differs or could not be compared, where that is no figure
    bool identical = false;    // one dtype and equal bits (0 is not -0), and no map acts
    bool undecided = false;    // a gradient that may be rounding noise, and may not
    bool taken_noise = false;  // and the same: CompareTensorsOptions::noise names it

    Verdict verdict() const;  // different for NaN
  };
  std::vector<Row> rows;                    // in the order of execution
  std::vector<std::string> only_a, only_b;  // without partner

  bool same() const { return verdict == Verdict::same; }
  std::string message() const;
};

// Compares B with the reference A, one tensor at a time. Values are computed in f64, but integers are compared as
// integers.
//
// These count as differences: nothing to compare, tensors without a single entry, a tensor without a partner, two
// tensors with the same partner, shapes that do not fit, and every NaN, even if both have it, because a NaN is no value
// and two failed computations do not agree. Equal infinities at one place are equal; the scale of their tensor is its
// largest other entry.
//
// Where the map splits a tensor of A or joins several, A's tensor is compared with B's joined parts, or with its part of B's
// tensor. If a rule of the map fits no tensor of A, a difference says so.
//
// If the map leaves out a tensor of A, the tensor of the same name in B is left out too. If no rule of the map fits the
// whole name of a parameter's tensor ("NAME.grad"), the rule for the parameter (NAME) is used.
//
// A gradient that differs is undecided if all its entries, in A and in B, are below 1000 eps (at most 1 %) of A's
// largest gradient: it can be rounding noise, and no control can tell. Zeros in both are the same.
//
// Throws if a pattern in `noise` is empty or the tolerance is negative, never because of the contents of A and B.
TensorsComparison compare_tensors(const LazyState& a, const LazyState& b, const ParameterMap& map = {},
                                  const CompareTensorsOptions& options = {});

// A row per tensor.
reports::Document document_of(const TensorsComparison& r);

}  // namespace isonorm::equivalence
