// Two sets of named tensors, activations, gradients or weights, from whatever program wrote them: are they equivalent
// through a parameter map? If they are not: which tensor is the first that differs, and why?
//
//   const auto r = equivalence::compare_tensors(load_safetensors("torch.safetensors"),
//                                               load_safetensors("ours.safetensors"), map);
//   std::puts(r.sentence().c_str());
//   // different: fc.weight[3, 4] is 0.25, in the reference 0.5: 5.0e-01 of the largest entry of its tensor, the
//   // tolerance is 1.0e-10 (1 of 42 tensors differs)
//
// A name tells the tensor's meaning (equivalence/explain/recorded.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivalence/coordinates/parameter_map.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/explain/recorded.h"
#include "equivalence/judge/judgement.h"
#include "io/lazy_state.h"
#include "reports/document.h"

namespace isonorm::equivalence {

struct CompareTensorsOptions {
  // Weights are compared as M w_A with w_B, gradients as g_A with M* g_B. The names say which tensors are gradients;
  // with this flag all parameters are.
  bool gradients = false;
  // Largest |difference| relative to the largest entry of the tensor in A. If not set: 3e-2 if A's or B's tensor is
  // bf16, else 4e-3 if one is F16, else 1e-4 if one is f32, else 1e-10. Differences in entries below that share of the
  // largest entry are not seen. Two integer tensors must be equal at any tolerance.
  std::optional<double> tolerance = {};
  // Results of A's program with other rounding alone, each with A's names. If there are controls, the criterion
  // (criterion.h) sets the tolerance of floating tensors: 30 times the deviation of the farthest control, and 64 eps of
  // the coarser dtype. A tensor is undecided if its tolerance would hide a real difference (largest_bound()).
  // Everything is undecided if no control differs from A.
  std::vector<LazyState> controls = {};
  // Names in A, with the * of parameter maps, of gradients that are zero in exact arithmetic, such as gradients of key
  // biases. The files hold rounding noise for them: such a gradient counts as equivalent if it is below 1000 eps (at
  // most 1 %) of the largest gradient in both files. Otherwise the name changes nothing.
  std::vector<std::string> noise = {};
  // The order of the comparison; if it has no names, A's own order.
  ExecutionOrder order = {};
  // The writers of each stream, for the hypotheses about a difference.
  std::vector<streams::Layout> layouts = {};
};

// `likely_cause`: a hypothesis that explains the difference; `tried`: hypotheses whose inputs were all recorded.
// `detectable`: the largest of the rows. undecided: nothing differs that could be compared, and something could not.
struct TensorsComparison : Judgement {
  bool identical = false;  // equivalent, and every row is
  std::string agrees,
      furthest;       // the last tensor that agrees before the first difference; the tensor that deviates most
  std::string order;  // the order that first_difference refers to; empty: A's own

  struct Row {
    std::string name, partner;  // in A and in B
    Dims shape;                 // as compared
    double deviation = 0, tolerance = 0;
    double control = 0;        // deviation of the farthest control
    double detectable = 0;     // the tensor times 1 + detectable would have been detected; 0: any change, or it is 0
    std::string problem = {};  // why it differs or could not be compared, if no number says so
    bool identical = false;    // one dtype and equal bits (0 is not -0), and no map acts
    bool undecided = false;    // a gradient that may or may not be rounding noise
    bool taken_noise = false;  // and equivalent: CompareTensorsOptions::noise names it

    Verdict verdict() const;  // different for NaN
  };
  std::vector<Row> rows;                    // in the order of execution
  std::vector<std::string> only_a, only_b;  // without partner
};

// Compares B with the reference A, one tensor at a time. Values are computed in f64, but integers are compared as
// integers.
//
// These count as differences: nothing to compare, tensors without a single entry, a tensor without a partner, two
// tensors with the same partner, shapes that do not fit, and every NaN. A NaN differs even if both have it: it is no
// value, and two failed computations do not agree. Equal infinities at one place are equal; the scale of their tensor
// is its largest other entry.
//
// If the map splits a tensor of A, it is compared with B's joined parts. If the map joins several tensors of A, each is
// compared with its part of B's tensor. If a rule of the map decides about no tensor of A, a difference says so.
//
// If the map leaves out a tensor of A, the tensor of the same name in B is left out too. If no rule of the map fits the
// whole name of a parameter's tensor ("NAME.grad"), the rule for the parameter (NAME) is used.
//
// A gradient that differs is undecided if all its entries, in A and in B, are below 1000 eps (at most 1 %) of A's
// largest gradient: it can be rounding noise, and no control can tell. Zeros in both are the same.
//
// Throws if a pattern in `noise` is empty or fits no tensor of A, or if the tolerance is negative. No values of A and B
// make it throw.
TensorsComparison compare_tensors(const LazyState& a, const LazyState& b, const ParameterMap& map = {},
                                  const CompareTensorsOptions& options = {});

// A row per tensor.
reports::Document document_of(const TensorsComparison& r);
// The JSON of the document.
const reports::Description& compare_description();

}  // namespace isonorm::equivalence
