// The experiments: each is confirmed, and the classes that they share can also refute a claim.
#include "lab/papers/experiment.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "lab/papers/margin.h"
#include "tests/support/catch.h"
#include "tests/support/markup.h"

using namespace isonorm::papers;
using namespace isonorm::reports;
using isonorm::test::contains;
using isonorm::test::unstyled;
using isonorm::test::well_formed;

TEST_CASE("experiments: every one is confirmed, for other seeds too, with a table and pictures") {
  std::set<std::string> names;
  const std::set<std::string> slow = {"trajectories", "paper-curves", "controls", "translator-norms"};
  for (const Experiment& e : experiments()) {
    CHECK(names.insert(e.name).second);
    CHECK(&find_experiment(e.name) == &e);
    if (e.has(kUntested)) continue;
    for (uint64_t seed : {1, 2}) {
      if (seed > 1 && slow.count(e.name)) continue;
      INFO(e.name << ", seed " << seed);
      const ExperimentOptions options{.seed = seed, .seeds = e.has(kTakesSeeds) ? 24 : 0};
      const ExperimentResult r = e.run(options);
      INFO(r.measured);
      CHECK(r.confirmed);
      CHECK_FALSE(r.refuted.empty());
      REQUIRE(r.tables.size() >= 1);
      REQUIRE(r.figures.size() >= 1);
      for (const TextTable& table : r.tables) {
        CHECK(table.rows.size() > 1);
        CHECK_FALSE(to_text(table, false).empty());
      }
      const Document d = document_of(e, options, r, 1.5);
      CHECK(closing(d).starts_with("Confirmed"));
      CHECK(well_formed(to_html(d)));
      CHECK(unstyled(to_html(d)) == std::set<std::string>());
      CHECK(contains(d.environment.command, "--seeds 24") == e.has(kTakesSeeds));
      for (const Figure& figure : r.figures) {
        CHECK(well_formed(figure_svg(figure)));
        CHECK(unstyled(figure_svg(figure)) == std::set<std::string>());
      }
    }
  }
  CHECK(names.size() >= 3);
  CHECK_THROWS_AS(find_experiment("perpetual_motion"), isonorm::Error);
}

TEST_CASE("experiments: the invariance table equals the one in 1910.07467") {
  const ExperimentResult r = find_experiment("invariance").run({});
  const auto row = [&](size_t i) {
    std::string marks;
    for (size_t c = 1; c < r.tables[0].rows[i].size(); ++c) marks += r.tables[0].rows[i][c].text[0];
    return marks;
  };
  CHECK(row(0) == "yynyny");  // layer_norm
  CHECK(row(1) == "ynnyny");  // rms_norm
  CHECK(row(4) == "ynyyyn");  // batch norm
  CHECK(row(5) == "ynynnn");  // weight norm
}

TEST_CASE("experiments: a margin refuses values on its wrong side, and NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Margin fine(1e-12, 1e-2);
  CHECK(fine.take(1e-13, true) == Tone::plain);
  CHECK(fine.take(1, false) == Tone::plain);
  CHECK(fine.kept());
  CHECK(fine.largest_same() == 1e-13);
  CHECK(fine.smallest_different() == 1);
  for (const auto& [value, same] : {std::pair{1e-11, true}, {1e-3, false}, {nan, true}, {nan, false}}) {
    Margin m(1e-12, 1e-2);
    CHECK(m.take(value, same) == Tone::bad);
    m.take(0, true);
    CHECK_FALSE(m.kept());
  }
}

TEST_CASE("experiments: a mean of four differences is trusted as far as Student's t goes") {
  const Difference d = paired_difference({2, 4, 6, 8}, {1, 2, 3, 4});
  CHECK(d.mean == Approx(2.5));
  CHECK(d.half == Approx(3.182446 * std::sqrt(5.0 / 3 / 4)));  // squares of 1.5, 0.5, 0.5, 1.5 over 3: the variance
  CHECK(paired_difference({1, 1, 1, 1}, {1, 1, 1, 1}).half == 0);
  CHECK_THROWS_WITH(paired_difference({1, 2, 3}, {1, 2, 3, 4}), Catch::Matchers::Contains("3 and 4 numbers"));
}
