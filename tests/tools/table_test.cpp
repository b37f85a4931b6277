// isonorm table as a person runs it.
#include "tests/tools/small_run.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("table: a grid as theory says gives 0, the table, JSON and a report") {
  const Folder f;
  CHECK_THAT(f.succeeds("table --optimizers sgd,adam_l2 --steps 5 --seeds 2 --json @t.json --report @t.html").out,
             Contains("a5 projected_gradients_and_weights") && Contains("SGD") && Contains("n/a") &&
                 Contains("\nEquivalent. All 30 cells are as theory says: "));
  const auto json = f.json("t.json");
  CHECK(json["command"] == "isonorm table --optimizers sgd --optimizers adam_l2 --steps 5 --seeds 2");
  const auto& cells = json["cells"];
  REQUIRE(cells.size() == 30);
  for (const auto& cell : cells) CHECK(cell["observed"] == cell["expected"]);
  CHECK(std::filesystem::file_size(f / "t.html") > 5000);
  CHECK_THAT(f.succeeds("table --optimizers sgd --steps 3 --seeds 1 --markdown").out,
             Contains("|  | SGD |\n|---|---|\n| a1 ") && Contains(" 3 steps, 1 seed, f64."));
  // One step moves no loss yet, so what differs is undecided, and nothing contradicts.
  CHECK_THAT(f.gives(5, "table --optimizers sgd --steps 1 --seeds 1").out,
             Contains("\nUndecided: 15 of 15 cells") && !Contains(" ??\n"));
}

TEST_CASE("table: four grids, and what updates depend on") {
  const Folder f;
  CHECK_THAT(f.succeeds("table --full --optimizers sgd,adafactor --steps 2 --seeds 1 --json @t.json").out,
             Contains("gpt, affine norms") && Contains("gpt, tied head") && Contains("vit") &&
                 Contains("Adafactor runs with eps1 = 1e-08"));
  std::map<std::string, int> cells;
  const auto json = f.json("t.json");
  for (const auto& cell : json["cells"]) ++cells[cell["grid"]];
  for (const std::string grid : {"gpt", "gpt, affine norms", "gpt, tied head"}) CHECK(cells[grid] == 30);
  CHECK_THAT(f.succeeds("table --predicates --optimizers sgd,adam").out,
             Contains("writers_mean_unseen") && Contains("U(aG + bH, aw + bv) = a U(G, w) + b U(H, v)"));
  CHECK_THAT(f.succeeds("table --help").out, Contains("5 undecided") && Contains("eps1 =\n1e-08"));
}
