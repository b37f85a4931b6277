// Two sets of named tensors, gradients or weights, from whatever program wrote them: are they the same through a
// parameter map?
//
//   const auto r = equivalence::compare_tensors(load_safetensors("torch.safetensors"),
//                                               load_safetensors("ours.safetensors"), map);
//   std::puts(r.message().c_str());
//   // different: fc.weight[3, 4] is 0.25, in the reference 0.5: 5.0e-01 of the largest entry of its tensor, the
//   // tolerance is 1.0e-10 (1 of 42 tensors differs)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "equivalence/compare/parameter_map.h"
#include "equivalence/coordinates/pairs.h"
#include "equivalence/lockstep/result.h"
#include "reports/document.h"

namespace isonorm::equivalence {

struct CompareTensorsOptions {
  // Of weights M w_A is compared with w_B; of gradients g_A with M* g_B.
  bool gradients = false;
  // Largest |difference| relative to the largest entry of the tensor in A. Where not set: 1e-10, 1e-4 where one of the
  // two tensors is f32, 3e-2 where one is bf16. Nothing is seen of entries below that share of the largest one. Two
  // tensors of integers must be equal whatever it is.
  std::optional<double> tolerance = {};
  // What A's program gives when rounding alone is another: each with A's names. Where there are some, the tolerance of a
  // tensor of floats is what the criterion (criterion.h) allows beside them: 30 times the farthest of them, and 64 eps of
  // the coarser dtype. One that is so wide that it would hide a real difference (largest_bound()) is undecided, and so is
  // all where none of them differs from A.
  std::vector<TensorMap> controls = {};
  // Gradients that are zero in exact arithmetic, such as those of key biases: names in A, with the * of parameter maps.
  // What the files hold of them is rounding noise: the same where it lies, in both, below 1000 eps (at most 1 %) of the
  // largest gradient of all. Elsewhere the name changes nothing.
  std::vector<std::string> noise = {};
};

struct TensorsComparison {
  // undecided: nothing differs that could be compared, and something could not.
  Verdict verdict = Verdict::different;
  bool identical = false;           // same, and every row is
  std::string reason, likely;       // one sentence; the cause, where the difference itself shows one
  double resolution = 0;            // where it is the same: the largest of the rows
  std::optional<EntryPlace> first;  // of the first tensor that differs the entry that is furthest off

  struct Row {
    std::string name, partner;  // in A and in B
    Dims shape;                 // of what was compared
    double deviation = 0, tolerance = 0;
    double resolution = 0;     // a factor of 1 + so much of all of it would have shown; 0: any, or it is 0 itself
    std::string problem = {};  // why it differs or could not be compared, where that is no figure
    bool identical = false;    // one dtype and equal bits (0 is not -0), and no map acts
    bool undecided = false;    // a gradient that may be rounding noise, and may not
    bool taken_noise = false;  // and the same: CompareTensorsOptions::noise names it

    Verdict verdict() const {
      if (undecided) return Verdict::undecided;
      return problem.empty() && (taken_noise || deviation <= tolerance) ? Verdict::same : Verdict::different;
    }
  };
  std::vector<Row> rows;                    // in A's order
  std::vector<std::string> only_a, only_b;  // without partner

  bool same() const { return verdict == Verdict::same; }
  std::string message() const;
};

// A is the reference. Values are computed in f64, but integers are compared as such. Nothing at all, tensors without a
// single entry, a NaN, a tensor without partner, a partner of two and shapes that do not fit are differences. What the
// map leaves out of A is left out of B too, where it has the same name. A gradient that differs and lies, in
// A and in B, below 1000 eps (at most 1 %) of A's largest of all is undecided: it can be rounding noise, and there is
// no control to tell; equal zeros are the same. Throws for an empty pattern in `noise`, never for what the two hold.
TensorsComparison compare_tensors(const TensorMap& a, const TensorMap& b, const ParameterMap& map = {},
                                  const CompareTensorsOptions& options = {});

// A row per tensor.
reports::Document document_of(const TensorsComparison& r);

}  // namespace isonorm::equivalence
