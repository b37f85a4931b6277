// Mistakes that people make in ports, planted one at a time: what is said of each is a cause that is the mistake, or the place
// of it and no cause.
#include <set>

#include "optim/adamw.h"
#include "optim/sgd.h"
#include "tests/equivalence/port.h"

namespace {

struct Planted {
  const char* bug;
  const char* look;   // forward, backward, update
  const char* cause;  // what the cause says; empty: none may be named
  const char* place;  // what the place says, or "=" and the tensors that differ
};

const Planted kPlanted[] = {
    {"ln1 eps", "forward", "another eps: the second model has 1e-06, the first 1e-05: with that in ln1", "ln1"},
    {"all eps", "forward", "another eps: the second model has 1e-06, the first 1e-05: with that in all 3 norms", "ln1"},
    {"ln2 unbiased", "forward", "another divisor: the second model divides by 7, the first by 8: with that in ln2",
     "ln2"},
    {"lnf rms", "forward", "another norm: the second model computes rms_norm: with that in lnf", "lnf"},
    {"ln1 gain+1", "forward", "gains read otherwise: the second model multiplies by what is stored + 1", "ln1"},
    {"ln2 no bias", "forward", "", "ln2"},
    {"ln2 eps out", "forward", "", "ln2"},
    {"ln1 over time", "forward", "", "ln1"},
    {"ln2 twice", "forward", "", "ln2"},
    {"no final norm", "forward", "", "lnf"},
    {"post norm", "forward", "", "ln1"},
    {"ln1 no mean", "backward", "", "ln1"},
    {"lnf no proj", "backward", "", "lnf"},
    {"ln2 mean cut", "backward", "", "ln2"},
    {"ln2 var cut", "backward", "", "ln2"},
    {"ln1 gain row", "backward", "", "=ln1.weight"},
};

// The tensors that differ.
std::string names_of(const Comparison& c) {
  std::string names;
  for (const DifferingTensor& t : c.first ? c.first->tensors : std::vector<DifferingTensor>())
    names += (names.empty() ? "" : " ") + t.place.tensor;
  return names;
}

Comparison compared(const char* bug) {
  manual_seed(3);
  Port a(false, ""), b(true, bug);
  return compare_gradients(a, b, {}, loss_of_port, port_batches(), {.points = 3});
}

}  // namespace

TEST_CASE("mistakes: a port without one is the same") {
  const Comparison c = compared("");
  INFO(c.message());
  CHECK(c.same());
}

// Whether a comparison says what it must, and nothing that is wrong.
struct Grade {
  bool looks, cause, place, wrong;
  bool right() const { return looks && !wrong && (cause || place); }
};

Grade grade(const Planted& p, const Comparison& c) {
  const auto has = [](const std::string& all, const std::string& part) { return all.find(part) != all.npos; };
  const std::string place = p.place;
  return {.looks = c.verdict == Verdict::different && has(c.reason, text("look at the ", p.look)),
          .cause = *p.cause && has(c.cause, p.cause),
          .place = place.starts_with('=') ? names_of(c) == place.substr(1) : has(c.place, place),
          .wrong = !c.cause.empty() && !(*p.cause && has(c.cause, p.cause))};
}

TEST_CASE("mistakes: each has its cause or its place, and no other cause is named") {
  for (const Planted& p : kPlanted) {
    const Comparison c = compared(p.bug);
    const Grade g = grade(p, c);
    INFO(p.bug << ": " << c.message());
    CHECK_FALSE(g.wrong);
    CHECK(g.right());
    CHECK((g.cause || !*p.cause));
  }
}
