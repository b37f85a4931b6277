// A planted mistake with its expected message, and the check of a comparison's message.
#pragma once

#include <string_view>

#include "equivalence/compare/compare.h"

namespace isonorm::equivalence {

struct Planted {
  const char* bug;
  const char* look;   // forward, backward, update
  const char* cause;  // text in the cause; empty: no cause may be named
  // Text in the place or the reason, or "=" and the names of the tensors that differ. Empty: not checked.
  const char* place;
};

// A comparison's answer to a mistake.
struct Said {
  std::string bug, said;
  bool right, wrong;  // neither: it names no cause and no place
};

inline Said said_of(const Planted& p, const Comparison& c) {
  const auto has = [](const std::string& all, const std::string& part) { return all.find(part) != all.npos; };
  std::string names;  // names of the tensors that differ
  for (const Deviation& t : c.first_difference ? c.first_difference->deviations : std::vector<Deviation>())
    names += (names.empty() ? "=" : " ") + t.where.tensor;
  const bool looks = c.verdict == Verdict::different &&
                     (!*p.look || has(c.reason, text("look at the ", p.look)) || has(c.reason, p.look));
  const bool cause = *p.cause && has(c.likely_cause, p.cause),
             place = *p.place && (has(c.place, p.place) || has(c.reason, p.place) || names == p.place);
  return {p.bug,
          !c.likely_cause.empty() ? "cause: " + c.likely_cause
          : !c.place.empty()      ? c.place
                                  : c.reason,
          looks && (cause || (c.likely_cause.empty() && place)),
          !looks || (!c.likely_cause.empty() && !cause) || (*p.cause && !cause)};
}

}  // namespace isonorm::equivalence
