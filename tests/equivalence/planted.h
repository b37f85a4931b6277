// A planted mistake with the expected message, and how a comparison's message meets it.
#pragma once

#include <string_view>

#include "equivalence/compare/compare.h"

namespace isonorm::equivalence {

struct Planted {
  const char* bug;
  const char* look;   // forward, backward, update
  const char* cause;  // text in the cause; empty: no cause may be named
  // Text in the place or the reason; "=" and the tensors that differ, if these are the place; empty: it need say nothing.
  const char* place;
};

// The comparison's answer to a mistake.
struct Said {
  std::string bug, said;
  bool right, wrong;  // neither: no cause, and no place either
};

inline Said said_of(const Planted& p, const Comparison& c) {
  const auto has = [](const std::string& all, const std::string& part) { return all.find(part) != all.npos; };
  std::string names;  // of the tensors that differ
  for (const DifferingTensor& t : c.first ? c.first->tensors : std::vector<DifferingTensor>())
    names += (names.empty() ? "=" : " ") + t.place.tensor;
  const bool looks = c.verdict == Verdict::different &&
                     (!*p.look || has(c.reason, text("look at the ", p.look)) || has(c.reason, p.look));
  const bool cause = *p.cause && has(c.cause, p.cause),
             place = *p.place && (has(c.place, p.place) || has(c.reason, p.place) || names == p.place);
  return {p.bug,
          !c.cause.empty()   ? "cause: " + c.cause
          : !c.place.empty() ? c.place
                             : c.reason,
          looks && (cause || (c.cause.empty() && place)),
          !looks || (!c.cause.empty() && !cause) || (*p.cause && !cause)};
}

}  // namespace isonorm::equivalence
