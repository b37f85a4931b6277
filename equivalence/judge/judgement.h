// The judgement of every comparison: the verdict, the first difference with the deviations there, its cause, and the
// sentence that says it.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "equivalence/judge/pairs.h"
#include "io/number_format.h"

namespace isonorm::equivalence {

// From best to worst. undecided: rounding alone can explain as much as a negative control shows, or too little was
// measured.
enum class Verdict { equivalent, undecided, different };

constexpr const char* name_of(Verdict v) {
  return v == Verdict::equivalent ? "equivalent" : v == Verdict::different ? "different" : "undecided";
}

// The verdict at the head of a report.
constexpr const char* heading_of(Verdict v) {
  return v == Verdict::equivalent ? "Equivalent" : v == Verdict::different ? "Different" : "Undecided";
}

// A number for each of the three quantities that a training is compared by.
struct Magnitudes {
  double loss = 0, gradient = 0, weight = 0;
};

// How far a tensor, or the loss, is from its reference, and how far rounding may take it.
struct Deviation {
  std::string what = {};             // "loss", "output", "gradient", "weight", "buffer", "logits of random inputs"
  EntryPlace where = {};             // the entry with the largest deviation; without a name for the loss
  double size = 0, bound = 0;        // relative to the tensor's largest entry
  bool as_a_whole = false;           // every entry is within its bound, but the tensor's size is not (pairs.h)
  double control = 0;                // verify: the deviation if every weight moves by one ulp
  NumberFormat format = DType::f64;  // verify: the coarsest format of a weight that the control moved

  bool explained() const;  // by rounding; false for NaN, also in programs that are compiled with -ffast-math
};

// How many tensors of a quantity were compared at a step or point, and how many differ.
struct CompareCount {
  std::string quantity;
  size_t compared = 0, differing = 0;
};

// The first step or point with a difference: the entry that is furthest off, every tensor that differs there, and how
// many were compared.
struct Difference {
  int step = 0;          // from 1; 0: a comparison without steps
  const char* quantity;  // "loss", "gradient", "weights", "tensor"
  EntryPlace place;      // without a name for the loss
  std::vector<Deviation> deviations = {};
  std::vector<CompareCount> counts = {};  // the loss first
};

// The number of steps in which a comparison of trainings can tell a right training from a negative control.
struct Horizon {
  int steps = 0;           // the bound is below `limit` in each quantity up to this step
  Magnitudes limit;        // a third of `reach` (criterion.h), at most 1e-5 in f64 and 1e-2 in f32
  Magnitudes detectable;   // the bound at the horizon (at step 1 if steps is 0): larger deviations are detected
  std::string ended_by{};  // the quantity whose bound reaches its limit at the next step; empty if none does
  std::string term{};  // the bound's largest term: "30 times the controls", "64 eps", or "the controls are not finite"
};

struct Judgement {
  Verdict verdict = Verdict::undecided;
  std::string reason;  // one sentence: the share of the bound and the detectable change, or the difference
  std::optional<Difference> first_difference;
  Horizon horizon;        // of trainings
  double detectable = 0;  // if nothing differs: any tensor times 1 + detectable would have been detected, except
                          // tensors that are 0 or rounding noise
  // Everything that was not compared: parameters that the map leaves out, buffers without a partner, ... Part of
  // sentence() if the verdict is `equivalent`.
  std::vector<std::string> not_compared;

  // Set for a difference, if they are found. place: the point at which two forwards, or two backwards, part.
  // likely_cause: the explanation. tried: if there is none, the causes that were tested in vain.
  std::string place, likely_cause;
  std::vector<std::string> tried;
  // The cause was tested on the two models: with it the difference in the loss and in every gradient vanishes, and
  // without it the difference is there again. False for a hypothesis about recorded tensors.
  bool cause_tested = false;

  bool equivalent() const { return verdict == Verdict::equivalent; }
  // "equivalent: ...", "undecided: ..." or "different: ...", and below that a line for each tensor that differs, for
  // the place and for the cause.
  std::string sentence() const;
};

// "at point 1 the loss agrees, and 2 of 8 gradients do not: look at the backward". at: "at point 1"; counts: the loss
// first.
std::string where_to_look(const std::string& at, const std::vector<CompareCount>& counts);

// "a, b and c".
std::string in_words(const std::vector<std::string>& parts);

}  // namespace isonorm::equivalence
