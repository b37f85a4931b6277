// G6 to G8: which variants train as Pre-LN does under which optimizer, on the grid's small model; forged cells.
#include "equivalence/table.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/random.h"
#include "equivalence/map.h"
#include "equivalence/table_text.h"
#include "optim/muon.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using Catch::Matchers::Contains;

namespace {

TableOptions small(std::vector<Variant> rows, std::vector<Recipe> columns) {
  TableOptions o;
  o.seeds = 1;
  o.rows = std::move(rows);
  o.columns = std::move(columns);
  return o;
}

void check_cells(const TableResult& r) {
  CHECK(r.as_expected);
  for (const Cell& cell : r.cells) {
    INFO(cell.variant.alias << ' ' << cell.variant.name << " with " << cell.recipe.title << ": expected "
                            << name_of(cell.expected) << ", " << cell.reason);
    CHECK(cell.as_expected);
    CHECK(cell.observed == cell.expected);
  }
}

}  // namespace

TEST_CASE("G6, G7: every variant with an optimizer of every class comes out as theory says") {
  TableOptions o;
  o.seeds = 1;
  o.columns = {recipe("momentum"), recipe("clip_momentum"), recipe("adam"), recipe("adam_l2")};
  check_cells(table(o));
}

TEST_CASE("a cell keeps the seed that speaks most against what was expected") {
  const auto run = [](double weight, Verdict observed, bool as_expected) {
    RunResult r = record(variant("b"));
    r.weight_deviation = weight, r.observed = observed, r.as_expected = as_expected;
    r.reason = text("off by ", weight);
    return r;
  };
  Cell same{.variant = variant("b"), .recipe = recipe("sgd"), .expected = Expectation::same, .observed = {}};
  take_seed(same, run(1e-15, Verdict::same, true), true);
  CHECK((same.as_expected && same.observed == Expectation::same));
  take_seed(same, run(1e-3, Verdict::different, false), false);
  take_seed(same, run(1e-14, Verdict::same, true), false);
  CHECK_FALSE(same.as_expected);
  CHECK(same.observed == Expectation::different);
  CHECK(same.weight == 1e-3);
  CHECK(same.reason == "off by 0.001");
  Cell different{.variant = variant("a2"), .recipe = recipe("sgd"), .expected = Expectation::different, .observed = {}};
  for (const double weight : {0.5, 0.25, 1.0})
    take_seed(different, run(weight, Verdict::different, true), weight == 0.5);
  CHECK(different.as_expected);
  CHECK(different.weight == 0.25);
}

TEST_CASE("Newton-Schulz commutes with orthonormal changes of basis and keeps zero means; with D it does not commute") {
  manual_seed(6);
  const int64_t d = 9;
  const optim::MuonOptions o;
  const double tolerance = 16 * std::pow(o.a, o.ns_steps) * 0x1p-52;  // a round grows a small error by the slope a
  for (int64_t other : {4, 9, 20}) {
    const Map q = Map::isometric(d), p = Map::recentre(d);
    const Tensor g = p(randn({d, other}, {DType::f64}), 0), u = newton_schulz(g, o);
    check_close(p(u, 0), u, tolerance);
    check_close(newton_schulz(q(g, 0), o), q(u, 0), tolerance);
    check_close(newton_schulz(transpose(q(g, 0), 0, 1), o), transpose(q(u, 0), 0, 1), tolerance);
    CHECK(relative_deviation(newton_schulz(Map::compress(d)(g, 0), o), Map::compress(d)(u, 0)) > 1e-3);
  }
}

TEST_CASE(
    "Muon: with AdamW for the rest as an elementwise optimizer, alone as a clipped one, unless its rate reads the "
    "shape") {
  TableOptions o;
  o.seeds = 1;
  o.columns = {recipe("muon"), recipe("muon_alone"), recipe("muon_shaped")};
  check_cells(table(o));
}

TEST_CASE("G8: what differs has left after one update") {
  TableOptions o = small({variant("a2"), variant("c1")}, {recipe("sgd")});
  o.steps = 2;
  check_cells(table(o));
  o = small({variant("a3"), variant("a6"), variant("d1")}, {recipe("adam")});
  o.steps = 2;
  check_cells(table(o));
  o = small({variant("a4"), variant("c3")}, {recipe("clip_momentum")});
  o.steps = 2;
  const TableResult r = table(o);
  check_cells(r);
  for (const Cell& cell : r.cells) CHECK(cell.loss > 1e-5);
}

TEST_CASE("a variant that is not what its row says is reported, both ways") {
  Variant forgotten = variant("a5"), diligent = variant("a3");
  forgotten.after_step = Projection::none;  // does not recentre the weights
  diligent.after_step = Projection::writers;
  const TableResult r = table(small({forgotten, diligent}, {recipe("adam")}));
  CHECK_FALSE(r.as_expected);
  CHECK(r.cells[0].expected == Expectation::same);
  CHECK(r.cells[0].observed == Expectation::different);
  CHECK(r.cells[1].expected == Expectation::different);
  CHECK(r.cells[1].observed == Expectation::same);
  CHECK_THAT(table_sentence(r), Contains("Not as theory says: 2 of 2") && Contains("a5") && Contains("Adam"));
  CHECK_THAT(cell_text(r.cells[0]), Contains("! ") && Contains("??"));
  CHECK_THAT(cell_text(r.cells[1]), Contains("= ") && Contains("??"));
}

TEST_CASE("a grid as JSON, Markdown and HTML") {
  TableOptions o = small({variant("b"), variant("c1"), variant("c4")}, {recipe("sgd"), recipe("adam_l2")});
  o.steps = 3;
  const TableResult r = table(o);
  const auto list = nlohmann::json::parse(table_json(r));
  REQUIRE(list.size() == 6);
  CHECK(list[0]["variant"] == "raw_rms_norm");
  CHECK(list[0]["alias"] == "b");
  CHECK(list[0]["optimizer"] == "sgd");
  CHECK(list[0]["expected"] == "same");
  CHECK(list[0]["observed"] == "same");
  CHECK(list[0]["deviation"].get<double>() <= 30 * list[0]["control"].get<double>() + 64 * 0x1p-52);
  CHECK(list[2]["observed"] == "different");
  CHECK(list[2]["deviation"].get<double>() > 1e-5);
  CHECK(list[5]["expected"] == "n/a");
  CHECK(list[5]["observed"] == "n/a");
  CHECK(list[5]["deviation"].is_null());
  CHECK_THAT(table_markdown(r), Contains("| c4 |") && Contains("|n/a|") && Contains("`compressed_lifted`"));
  CHECK_THAT(table_html(r), Contains("As theory says") && Contains("compressed_lifted"));
}

TEST_CASE("a grid stops when it is told to, and refuses options that make none") {
  TableOptions o = small({variant("b")}, {recipe("sgd"), recipe("adam")});
  o.steps = 1;
  int calls = 0;
  const TableResult r = table(o, [&](const TableProgress&) { return ++calls < 1; });
  CHECK(calls == 1);
  CHECK(r.interrupted);
  CHECK_FALSE(r.as_expected);
  o.steps = 0;
  CHECK_THROWS_WITH(table(o), Contains("0 steps"));
  o.steps = 1;
  o.columns.clear();
  CHECK_THROWS_WITH(table(o), Contains("0 optimizers"));
}
