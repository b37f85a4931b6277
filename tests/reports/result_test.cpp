// A described result: its JSON has the fields with their kinds, and its page names them.
#include "reports/result.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace isonorm::reports;
using nlohmann::json;

namespace {

struct Part {
  std::string name;
  std::optional<double> deviation;
};

struct Whole {
  std::string verdict = "equivalent";
  bool passed = true;
  int steps = 30;
  double loss = 0.5;
  std::vector<double> losses = {1, std::numeric_limits<double>::infinity(), 3};
  std::vector<Part> parts = {{"first", 1e-3}, {"second", {}}};
  std::optional<Part> best = {};
  std::vector<Named> known = {{"lr", 1e-3}, {"data", std::string("text")}};
};

const Schema<Whole>& schema() {
  const auto part = Fields<Part>().add("name", &Part::name, "what it is").add("deviation", &Part::deviation, "size");
  static const Schema<Whole> all{"whole", "All kinds of fields.",
                                 Fields<Whole>()
                                     .add("verdict", &Whole::verdict, "a |word|")
                                     .add("passed", &Whole::passed, "a flag")
                                     .add("steps", &Whole::steps, "a count")
                                     .add("loss", &Whole::loss, "a number")
                                     .add(
                                         "twice", [](const Whole& w) { return 2 * w.loss; }, "a function")
                                     .add("losses", &Whole::losses, "a curve")
                                     .add("parts", &Whole::parts, "objects", part)
                                     .add("best", &Whole::best, "an object, if there is one", part)
                                     .add("known", &Whole::known, "members that the description does not name")};
  return all;
}

}  // namespace

TEST_CASE("result: JSON has every field, and null for numbers that are missing or not finite") {
  Whole whole;
  const json j = json::parse(to_json(schema()(whole), "said"));
  const json expected = {{"schema", "isonorm.whole/1"},
                         {"verdict", "equivalent"},
                         {"passed", true},
                         {"steps", 30},
                         {"loss", 0.5},
                         {"twice", 1.0},
                         {"losses", {1, nullptr, 3}},
                         {"parts", {{{"name", "first"}, {"deviation", 1e-3}}, {{"name", "second"}, {"deviation", {}}}}},
                         {"best", {}},
                         {"known", {{"lr", 1e-3}, {"data", "text"}}},
                         {"options", json::object()},
                         {"text", "said"},
                         {"command", ""},
                         {"seconds", 0.0},
                         {"environment", json::object()},
                         {"non_finite", {"/losses/1"}}};
  for (const auto& [key, value] : expected.items()) CHECK(j.at(key) == value);
  CHECK(j.size() == expected.size());
  CHECK(j["steps"].is_number_integer());
  CHECK(j["twice"].is_number_float());
  CHECK(j[json::json_pointer(j["non_finite"][0].get<std::string>())].is_null());
  whole.best = Part{"third", 2};
  CHECK(json::parse(to_json(schema()(whole), ""))["best"] == json({{"name", "third"}, {"deviation", 2}}));
}

TEST_CASE("result: the page has the kind and the meaning of every field") {
  CHECK_THAT(
      to_markdown({&schema()}),
      Catch::Matchers::EndsWith(
          "## whole\n\nAll kinds of fields.\n\n| field | kind | meaning |\n|---|---|---|\n"
          "| `verdict` | string | a \\|word\\| |\n| `passed` | boolean | a flag |\n| `steps` | integer | a count |\n"
          "| `loss` | number | a number |\n| `twice` | number | a function |\n| `losses` | list of numbers | a "
          "curve |\n"
          "| `parts` | list of objects | objects |\n| `parts[].name` | string | what it is |\n"
          "| `parts[].deviation` | number or null | size |\n"
          "| `best` | object or null | an object, if there is one |\n| `best.name` | string | what it is |\n"
          "| `best.deviation` | number or null | size |\n"
          "| `known` | object | members that the description does not name |\n\n"));
}

TEST_CASE("result: a column with two numbers becomes two, and counts stay whole") {
  const TextTable table{
      .heading = "Runs",
      .columns = {"run", "loss\n/ control", "steps"},
      .rows = {{{"first"}, beside_cell(1e-15, 2e-15), count_cell(200)}, {}, {{"second"}, number_cell(0.5), {}}}};
  const json j = json::parse(to_json(table_fields()(table), ""));
  CHECK(j["columns"] == json({"run", "loss", "control", "steps"}));
  CHECK(j["rows"] == json({{"first", 1e-15, 2e-15, 200}, {"second", 0.5, nullptr, nullptr}}));
  CHECK(j["rows"][0][3].is_number_integer());
}
