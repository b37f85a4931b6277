// isonorm table as a person runs it.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("table: a grid as theory says gives 0, the table, JSON and a report") {
  const TempFolder folder;
  const ChildResult r = run_child({"table", "--optimizers", "sgd,adam_l2", "--steps", "5", "--seeds", "2", "--json",
                                   folder / "t.json", "--report", folder / "t.html"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("a5 projected_gradients_and_weights") && Contains("SGD") && Contains("n/a") &&
                        Contains("\nAs theory says: of 30 cells"));
  std::ifstream file(folder / "t.json");
  const auto json = nlohmann::json::parse(file);
  CHECK(json["command"] == "isonorm table --optimizers sgd --optimizers adam_l2 --steps 5 --seeds 2");
  const auto& cells = json["tables"]["Every cell: gpt"];
  REQUIRE(cells.size() == 30);
  for (const auto& cell : cells) CHECK(cell["observed"] == cell["expected"]);
  CHECK(std::filesystem::file_size(folder / "t.html") > 5000);

  const ChildResult markdown =
      run_child({"table", "--optimizers", "sgd", "--steps", "3", "--seeds", "1", "--markdown"});
  CHECK(markdown.code == 0);
  CHECK_THAT(markdown.out, Contains("|  | SGD |\n|---|---|\n| a1 ") && Contains(" 3 steps, 1 seed, f64."));
}

TEST_CASE("table: one step moves no loss yet, so what differs is undecided, and nothing contradicts") {
  const ChildResult r = run_child({"table", "--optimizers", "sgd", "--steps", "1", "--seeds", "1"});
  INFO(r.out << r.err);
  CHECK(r.code == 5);
  CHECK_THAT(r.out, Contains("\nUndecided: 15 of 15 cells") && !Contains(" ??\n"));
}

TEST_CASE("table: four grids, and what updates depend on") {
  const TempFolder folder;
  const ChildResult r = run_child({"table", "--full", "--optimizers", "sgd,adafactor", "--steps", "2", "--seeds", "1",
                                   "--json", folder / "t.json", "--report", folder / "t.html"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("gpt, affine norms") && Contains("gpt, tied head") && Contains("vit") &&
                        Contains("Adafactor runs with eps1 = 1e-08"));
  std::ifstream file(folder / "t.json");
  const auto tables = nlohmann::json::parse(file)["tables"];
  for (const char* grid : {"gpt", "gpt, affine norms", "gpt, tied head"})
    CHECK(tables[std::string("Every cell: ") + grid].size() == 30);
  const ChildResult predicates = run_child({"table", "--predicates", "--optimizers", "sgd,adam"});
  CHECK(predicates.code == 0);
  CHECK_THAT(predicates.out,
             Contains("writers_mean_unseen") && Contains("U(aG + bH, aw + bv) = a U(G, w) + b U(H, v)"));
  CHECK_THAT(run_child({"table", "--help"}).out, Contains("5 undecided") && Contains("eps1 = 1e-08"));
}

TEST_CASE("table: usage errors exit with 2 and name what is wrong") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"table", "--steps", "0"}, "--steps"},
      {{"table", "--seeds", "-1"}, "--seeds"},
      {{"table", "--optimizers", "sgd,gradient"}, "gradient"},
      {{"table", "--optimizers", "sgd,adam,sgd"}, "twice"},
      {{"table", "--model", "mlp"}, "mlp"},
      {{"table", "--full", "--model", "vit"}, "--model"},
      {{"table", "--threads", "0"}, "--threads"}};
  for (const auto& [arguments, part] : wrong) {
    const ChildResult r = run_child(arguments);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains("isonorm table: ") && Contains(part));
  }
  CHECK(run_child({"table", "--json", "/nowhere/t.json"}).code == 4);
}
