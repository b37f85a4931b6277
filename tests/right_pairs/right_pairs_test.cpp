// No comparison of a right pair is "different": every run tests a tenth of the seeds, scripts/test --long tests all.
// The output of the long test is tests/right_pairs/long.txt.
#include <cstdio>

#include "tests/right_pairs/pair.h"
#include "tests/support/catch.h"

using namespace isonorm;
using equivalence::Verdict;

namespace {

// The verdicts of a pair's comparisons, over seeds.
struct Tally {
  int same = 0, undecided = 0, different = 0;
  std::vector<double> seen = {};  // detectable sizes, if they are the same
  std::string first_different = {};
  std::string first_undecided = {};

  void add(const equivalence::Comparison& c, uint64_t seed) {
    same += c.verdict == Verdict::equivalent;
    undecided += c.verdict == Verdict::undecided;
    different += c.verdict == Verdict::different;
    const auto note = [&](std::string& first) {
      if (first.empty()) first = text("seed ", seed, ": ", c.sentence());
    };
    if (c.verdict == Verdict::different) note(first_different);
    if (c.verdict == Verdict::undecided) note(first_undecided);
    if (c.equivalent()) seen.push_back(c.horizon.steps > 0 ? c.horizon.detectable.gradient : c.detectable);
  }
  double median() {
    std::ranges::sort(seen);
    return seen.empty() ? 0 : seen[seen.size() / 2];
  }
};

Tally compare_seeds(const right_pairs::RightPair& pair, DType dtype, uint64_t seeds) {
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds; ++seed) tally.add(right_pairs::compare(pair, {dtype, seed}), seed);
  return tally;
}

}  // namespace

TEST_CASE("right pairs: none is called different, and in f64 gradients are decided") {
  for (const right_pairs::RightPair& pair : right_pairs::all_pairs())
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tally tally = compare_seeds(pair, dtype, 5);
      INFO(pair.name << ", " << name_of(dtype) << ": " << tally.first_different << tally.first_undecided);
      CHECK(tally.different == 0);
      if (dtype == DType::f64 && !pair.optimizer) CHECK(tally.undecided == 0);
    }
}

// "detectable": the median over seeds of the detectable factor (gradients) or deviation (trajectories) of a gradient.
TEST_CASE("right pairs: 54 seeds of each in f64 and f32", "[.long]") {
  std::printf("%-72s %-36s %s\n%-72s", "", "f64", "f32", "pair");
  for (int dtype = 0; dtype < 2; ++dtype)
    std::printf(" %5s %9s %9s %10s", "equal", "undecided", "different", "detectable");
  int comparisons = 0, different = 0;
  for (const right_pairs::RightPair& pair : right_pairs::all_pairs()) {
    std::printf("\n%-72s", pair.name.c_str());
    for (const DType dtype : {DType::f64, DType::f32}) {
      Tally tally = compare_seeds(pair, dtype, 54);
      std::printf(" %5d %9d %9d %10.1e", tally.same, tally.undecided, tally.different, tally.median());
      std::fflush(stdout);
      INFO(pair.name << ", " << name_of(dtype) << ": " << tally.first_different);
      CHECK(tally.different == 0);
      comparisons += tally.same + tally.undecided + tally.different, different += tally.different;
    }
  }
  std::printf("\n\n%d comparisons, %d different\n", comparisons, different);
}
