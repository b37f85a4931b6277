// The record of a training in a proof: its deviations from the reference at every step, and its judgement.
#pragma once

#include <cstdint>

#include "equivalence/coordinates/variant.h"
#include "equivalence/judge/judgement.h"

namespace isonorm::equivalence {

// Deviation from the reference at every step, each relative to the size of the quantity, so that 1 is the scale.
//   loss      |l - l_ref| / |l_ref|
//   gradient  largest over tensors of max |g - g_ref| / max |g_ref|, in raw coordinates before clipping, not projected;
//             tensors whose exact gradient is zero (key biases) are divided by the largest entry in any gradient
//   weight    the same for the weights after the step, without directions that the function cannot see
struct Deviations {
  std::vector<double> loss, gradient, weight;
};

struct Quantity {
  const char *name, *spoken;
  std::vector<double> Deviations::*path;
  double Magnitudes::*size;
};
inline constexpr Quantity kQuantities[] = {{"loss", "the loss", &Deviations::loss, &Magnitudes::loss},
                                           {"gradient", "gradients", &Deviations::gradient, &Magnitudes::gradient},
                                           {"weights", "weights", &Deviations::weight, &Magnitudes::weight}};

struct RunResult : Judgement {
  std::string form;  // layer_norm, rms_norm, crms_norm, crms_isometric
  const Variant* variant = &raw_variant(streams::Form::layer_norm);
  std::optional<Device> device = {};  // the device, if it is not the reference's
  uint64_t seed = 0;                  // of a control: the seed that moved its weights by one ulp
  const char* negative_control = "";  // of a negative control: its mistake in addition to the variant
  Verdict expected = Verdict::equivalent;
  bool same_start = true;         // if `different` is expected: loss and gradient begin as the reference's
  bool may_be_identical = false;  // false: equal bits throughout mean that it was compared with itself
  bool as_expected = false;       // verdict == expected; for `different`, also by the margin of criterion.h

  Magnitudes largest;     // deviations over the run
  Deviations deviations;  // empty for the reference itself
  Deviations control;     // D_c(t): largest deviation up to step t of any control that ran the same steps
  Magnitudes reach;       // how far negative controls of the same model get (criterion.h)

  int64_t parameters = 0;
  std::vector<double> losses;
  std::optional<double> accuracy;                // on test examples, 0 to 1; none without a test pass
  std::optional<int64_t> differing_predictions;  // number of test predictions that differ from the reference's

  // equivalent: the verdict is the expected one, by its margin; different: the contrary was observed; undecided: else.
  Verdict agreement() const;
};

// The empty record of a run. seed: for a control.
inline RunResult record(const Variant& variant, uint64_t seed = 0) {
  RunResult r;
  r.form = name_of(variant.form);
  r.variant = &variant;
  r.seed = seed;
  return r;
}

// The records of Pre-LN itself and of its controls, with seeds 1, 2, ...
inline RunResult reference_record() { return record(raw_variant(streams::Form::layer_norm)); }
inline std::vector<RunResult> control_records(int count) {
  std::vector<RunResult> controls;
  for (int c = 1; c <= count; ++c)
    controls.push_back(record(raw_variant(streams::Form::layer_norm), static_cast<uint64_t>(c)));
  return controls;
}

}  // namespace isonorm::equivalence
