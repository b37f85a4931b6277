// G6, G7, G9: which variants train like Pre-LN with which optimizer, on the grid's small model; forged cells.
#include "equivalence/grid/grid.h"

#include <algorithm>

#include "equivalence/judge/criterion.h"
#include "equivalence/text/grid_text.h"
#include "tests/equivalence/room.h"
#include "tests/support/markup.h"

using namespace isonorm::reports;

namespace {

TableOptions small(std::vector<Variant> rows, std::vector<Recipe> columns, int steps = TableOptions().steps) {
  return {.data = {}, .steps = steps, .seeds = 1, .rows = std::move(rows), .columns = std::move(columns)};
}

void check_cells(const TableResult& r) {
  CHECK(r.as_expected());
  for (const Cell& cell : r.cells) {
    INFO(cell.variant.alias << ' ' << cell.variant.name << " with " << cell.recipe.title << ": expected "
                            << name_of(cell.expected) << ", " << cell.reason);
    CHECK(cell.as_expected());
    CHECK(cell.observed == cell.expected);
  }
}

std::string sentence(const TableResult& r) { return closing(document_of({&r, 1})); }

}  // namespace

TEST_CASE("G6, G7: every variant with every optimizer comes out as theory says") {
  const TableResult r = table({.data = {}, .steps = 6, .seeds = 1, .controls = 2});
  CHECK(r.cells.size() == 330);
  check_cells(r);
}

TEST_CASE("G9: affine norms, a tied head and a ViT come out as theory says") {
  TableOptions o = small({variants().begin(), variants().end()}, {recipe("sgd"), recipe("adam"), recipe("lamb")}, 4);
  o.controls = 2;
  std::vector<std::string> titles, undefined;
  for (TableOptions& grid : full_tables(o)) {
    grid.made = grid.model == &kVit;  // needs no data files
    const TableResult r = table(grid);
    INFO(title_of(grid));
    check_cells(r);
    titles.push_back(title_of(grid));
    std::string& none = undefined.emplace_back();
    for (size_t row = 0; row < o.rows.size(); ++row)
      if (r.cell(row, 0).observed == std::nullopt) none += text(o.rows[row].alias, " ");
  }
  CHECK(titles == std::vector<std::string>{"gpt", "gpt, affine norms", "gpt, tied head", "vit, made images"});
  CHECK(undefined == std::vector<std::string>{"", "a6 a7 c1 c3 c4 d1 d2 ", "", ""});
}

TEST_CASE("a cell keeps the seed with the strongest evidence against the expectation") {
  const auto run = [](double weight, Verdict observed, bool as_expected) {
    RunResult r = record(variant("b"));
    r.largest.weight = weight, r.verdict = observed, r.as_expected = as_expected;
    r.reason = text("off by ", weight);
    return r;
  };
  Cell same{.variant = variant("b"), .recipe = recipe("sgd"), .expected = Verdict::equivalent, .observed = {}};
  take_seed(same, run(1e-15, Verdict::equivalent, true), true);
  CHECK((same.as_expected() && same.observed == Verdict::equivalent));
  take_seed(same, run(1e-3, Verdict::different, false), false);
  take_seed(same, run(1e-14, Verdict::equivalent, true), false);
  CHECK(same.agreement == Verdict::different);
  CHECK(same.observed == Verdict::different);
  CHECK(same.deviation.weight == 1e-3);
  CHECK(same.reason == "off by 0.001");
  Cell different{.variant = variant("a2"), .recipe = recipe("sgd"), .expected = Verdict::different, .observed = {}};
  for (const double weight : {0.5, 0.25, 1.0})
    take_seed(different, run(weight, Verdict::different, true), weight == 0.5);
  CHECK(different.as_expected());
  CHECK(different.deviation.weight == 0.25);
}

TEST_CASE("a seed that is undecided, not a number, zero or infinite") {
  const auto run = [](const char* name, Verdict expected, double deviation, double control = 1e-15) {
    RunResult r = record(variant(name));
    r.expected = expected;
    const std::vector<double> path(20, deviation), bound(20, control);
    r.deviations = {path, path, path};
    if (expected == Verdict::different) r.deviations.loss[0] = 0;
    r.control = {bound, bound, bound};
    r.reach = {0.1, 0.1, 0.1};
    judge(r, DType::f64);
    return r;
  };
  const auto cell = [&](MaybeVerdict expected, const std::vector<RunResult>& seeds) {
    Cell c{.variant = *seeds[0].variant, .recipe = recipe("sgd"), .expected = expected, .observed = {}};
    for (const RunResult& r : seeds) take_seed(c, r, &r == seeds.data());
    return c;
  };
  const MaybeVerdict same = Verdict::equivalent, different = Verdict::different;
  const RunResult fits = run("b", Verdict::equivalent, 1e-15), off = run("a2", Verdict::different, 0.1);
  CHECK(cell(same, {fits, fits}).agreement == Verdict::equivalent);
  CHECK(cell(different, {off, off}).agreement == Verdict::equivalent);
  // controls as far off as a negative control, or controls that did not move: undecided
  const RunResult blurred = run("b", Verdict::equivalent, 1e-15, 1e-3),
                  unmoved = run("b", Verdict::equivalent, 1e-15, 0);
  for (const RunResult& r : {blurred, unmoved}) {
    const Cell c = cell(same, {fits, r, fits});
    CHECK(c.agreement == Verdict::undecided);
    CHECK(c.observed == Verdict::undecided);
    CHECK(cell(same, {r, run("b", Verdict::equivalent, 1e-3), fits}).agreement == Verdict::different);
  }
  CHECK(cell_text(cell(same, {blurred})) == "? 1e-15");
  for (const double forged : {NAN, INFINITY}) {
    const Cell one = cell(same, {fits, run("b", Verdict::equivalent, forged), fits});
    CHECK(one.agreement == Verdict::different);
    CHECK_FALSE(one.deviation.loss <= 1);
  }
  const Cell nan = cell(different, {off, run("a2", Verdict::different, NAN), off});
  CHECK(nan.agreement == Verdict::undecided);
  CHECK(std::isnan(nan.deviation.weight));
  CHECK(cell(same, {fits, run("b", Verdict::equivalent, 0)}).agreement == Verdict::undecided);  // compared with itself
  // as expected, but without the margin: 1e-7 exceeds the bound and is below the least difference
  const Cell little = cell(different, {off, run("a2", Verdict::different, 1e-7), off});
  CHECK(little.agreement == Verdict::undecided);
  CHECK(little.observed == Verdict::undecided);
  CHECK_THAT(little.reason, Contains("at least 1.0e-05 expected"));
  CHECK(cell(different, {off, run("a2", Verdict::different, 0)}).agreement == Verdict::different);
}

TEST_CASE("a grid with an undecided cell is undecided, with a contradiction it is not as theory says") {
  TableResult r = table(small({variant("b"), variant("a2")}, {recipe("sgd")}, 3));
  CHECK(r.as_expected());
  r.cells[0].observed = Verdict::undecided;
  r.cells[0].reason = "too little";
  r.verdict = r.cells[0].agreement = Verdict::undecided;
  CHECK_THAT(sentence(r), StartsWith("Undecided: 1 of 2 cells, first b raw_rms_norm with SGD: expected equivalent"));
  CHECK(document_of({&r, 1}).tone == Tone::plain);
  r.verdict = r.cells[1].agreement = Verdict::different;
  CHECK_THAT(sentence(r), StartsWith("Different: 1 of 2 cells, first a2"));
}

TEST_CASE("rounding that grows as fast as a negative control leaves the grid undecided") {
  Recipe wild = recipe("sgd");
  wild.lr = 8;
  const TableResult r = table(small({variant("b"), variant("c5")}, {wild}, 30));
  CHECK(r.verdict == Verdict::undecided);
  for (const Cell& cell : r.cells) CHECK(cell.observed == Verdict::undecided);
}

TEST_CASE("an expectation depends on the effect of a variant and an optimizer, not on their names") {
  Variant forgotten = variant("a5"), diligent = variant("a3"), raw = variant("c1");
  forgotten.after_step = Projection::none;  // does not recentre the weights
  diligent.after_step = Projection::writers;
  raw.storage = streams::Stored::raw;
  Recipe lying = recipe("lamb");
  lying.name = "sgd", lying.title = "SGD";
  const TableResult r = table(small({diligent, raw, forgotten}, {recipe("adam")})),
                    lied = table(small({variant("a1"), variant("a3"), variant("b")}, {lying}));
  check_cells(r), check_cells(lied);
  for (size_t row : {0u, 1u}) CHECK(r.cells[row].expected == Verdict::equivalent);
  CHECK(r.cells[2].expected == Verdict::different);
  CHECK(lied.cells[0].expected == Verdict::different);
  CHECK_FALSE(lied.predicates[0](Property::writers_mean_unseen));
}

TEST_CASE("a contradiction between the derived and the trained verdict is reported") {
  TableResult r = table(small({variant("a5"), variant("a3")}, {recipe("adam")}));
  for (Cell& cell : r.cells) {  // with the opposite expectations
    RunResult run = record(cell.variant);
    run.verdict = *cell.observed;
    run.largest.loss = cell.deviation.loss;
    cell.expected = cell.expected == Verdict::equivalent ? Verdict::different : Verdict::equivalent;
    run.expected = *cell.expected;
    take_seed(cell, run, true);
    r.verdict = cell.agreement;
  }
  CHECK(r.verdict == Verdict::different);
  CHECK_THAT(sentence(r), Contains("Different: 2 of 2") && Contains("a5") && Contains("Adam"));
  CHECK_THAT(cell_text(r.cells[0]), Contains("= ") && Contains("??"));
  CHECK_THAT(cell_text(r.cells[1]), Contains("! ") && Contains("??"));
  CHECK(document_of({&r, 1}).tone == Tone::bad);
  CHECK(grid_table(r).rows[0][1].tone == Tone::bad);
}

TEST_CASE("cells do not depend on the order of rows and columns, and none may be there twice") {
  TableOptions o = small({variant("d1"), variant("a4"), variant("b")}, {recipe("clip_momentum"), recipe("sgd")}, 3);
  const TableResult r = table(o);
  check_cells(r);
  std::reverse(o.rows.begin(), o.rows.end());
  std::reverse(o.columns.begin(), o.columns.end());
  const TableResult turned = table(o);
  for (size_t row = 0; row < 3; ++row)
    for (size_t c = 0; c < 2; ++c) {
      CHECK(turned.cell(row, c).deviation.loss == r.cell(2 - row, 1 - c).deviation.loss);
      CHECK(turned.cell(row, c).expected == r.cell(2 - row, 1 - c).expected);
    }
  o.columns = {recipe("sgd"), recipe("adam"), recipe("sgd")};
  CHECK_THROWS_WITH(table(o), Contains("the optimizer sgd is there twice, at 1 and 3"));
  o.columns = {recipe("sgd")};
  o.rows = {variant("b"), variant("b")};
  CHECK_THROWS_WITH(table(o), Contains("the variant raw_rms_norm is there twice"));
}

TEST_CASE("a row that is the reference itself proves nothing") {
  Variant idle = variant("a1");
  idle.start = Projection::none;  // Pre-LN without changes
  const TableResult r = table(small({idle}, {recipe("sgd")}, 3));
  CHECK(r.verdict == Verdict::undecided);
  CHECK(r.cells[0].observed == Verdict::undecided);
  CHECK_THAT(r.cells[0].reason, Contains("compared with itself"));
}

TEST_CASE("a grid as a document: variants by optimizers, and all that is known of each cell") {
  const TableOptions o = small({variant("b"), variant("c1"), variant("c4")}, {recipe("sgd"), recipe("adam_l2")}, 3);
  const std::vector<TableResult> r = {table(o)};
  const Document d = document_of(r);
  CHECK(d.tables[0].rows[1][0].text == "c1 compressed_plain");
  CHECK(d.tables[0].rows[2][2].text == "n/a");
  const TextTable& depends = d.tables[1];
  const auto linear = std::find(depends.columns.begin(), depends.columns.end(), "linear") - depends.columns.begin();
  CHECK_THAT(depends.rows[0].at(linear).text, StartsWith("yes "));
  CHECK_THAT(depends.rows[1].at(linear).text, StartsWith("no "));
  const auto& cells = d.tables[2].rows;
  REQUIRE(cells.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(cells[i][1].text == title_of(o.columns[i % 2]));
  CHECK(cells[2][3].text == "the update lacks covariant");
  CHECK(cells[2][4].text == "different");
  CHECK(*cells[0][5].value <= 30 * *cells[0][5].beside + 64 * 0x1p-52);
  CHECK(*cells[2][5].value > 1e-5);
  CHECK_FALSE(cells[5][5].value);
  CHECK(test::unstyled(to_html(d)) == std::set<std::string>());
  CHECK_THAT(sentence(r[0]), StartsWith("Equivalent. All 6 cells are as theory says: "));
  CHECK(document_of(std::vector{r[0], r[0]}).tables.size() == 7);
  const TableResult floored = table(small({variant("b")}, {recipe("adafactor"), recipe("sgd")}, 2));
  CHECK_THAT(document_of({&floored, 1}).remarks[0], Contains("eps1 = 1e-08 in f64 (its default is 2.2e-16)"));
}

TEST_CASE("a grid stops when it is told to, and refuses options that make none") {
  TableOptions o = small({variant("b")}, {recipe("sgd"), recipe("adam")}, 1);
  int calls = 0;
  const TableResult r = table(o, [&](const TableProgress&) { return ++calls < 1; });
  CHECK(calls == 1);
  CHECK(r.interrupted);
  CHECK_FALSE(r.as_expected());
  o.steps = 0;
  CHECK_THROWS_WITH(table(o), Contains("0 steps"));
  o.steps = 1;
  o.columns.clear();
  CHECK_THROWS_WITH(table(o), Contains("0 optimizers"));
}
