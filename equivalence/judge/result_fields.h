// Internal: fields of JSON results that several commands share.
#pragma once

#include "equivalence/judge/run_result.h"
#include "reports/result.h"

namespace isonorm::equivalence {

// good: equivalent; bad: different.
inline reports::Tone tone_of(Verdict v) {
  return v == Verdict::equivalent  ? reports::Tone::good
         : v == Verdict::different ? reports::Tone::bad
                                   : reports::Tone::plain;
}

// Null in place of an empty string.
inline std::optional<std::string> if_any(const std::string& s) { return s.empty() ? std::nullopt : std::optional(s); }

inline reports::Fields<Magnitudes> magnitude_fields() {
  return reports::Fields<Magnitudes>()
      .add("loss", &Magnitudes::loss, "of the loss")
      .add("gradients", &Magnitudes::gradient, "the largest of any gradient")
      .add("weights", &Magnitudes::weight, "the largest of any weight");
}

inline reports::Fields<EntryPlace> difference_fields() {
  return reports::Fields<EntryPlace>()
      .add("tensor", &EntryPlace::tensor, "name of the tensor; empty: the loss")
      .add(
          "index", [](const EntryPlace& p) { return std::vector<int64_t>(p.index.begin(), p.index.end()); },
          "place of the entry that is furthest off")
      .add("a", &EntryPlace::reference, "its value in the reference")
      .add("b", &EntryPlace::value, "its value in the other")
      .add("deviation", &EntryPlace::deviation, "|a - b| relative to the scale of the tensor");
}

}  // namespace isonorm::equivalence
