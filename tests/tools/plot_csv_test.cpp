// isonorm plot reads the CSV logs of trainings.
#include "core/error.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

TEST_CASE("plot: a CSV log shows the numbers of the JSON log of the same training") {
  const Folder f;
  const std::string train = "train +small --dtype f64 --steps 30 -q --evaluate-every 10 ";
  f.succeeds(train + "--log @a.jsonl");
  f.succeeds(train + "--log @a.csv");
  f.succeeds(train + "--log @b.jsonl --lr 0.5");
  f.succeeds("plot @a.jsonl @a.csv --svg @pictures --json @numbers");
  const nlohmann::json numbers = f.json("numbers");
  const auto& rows = numbers["trainings"];
  REQUIRE(rows.size() == 2);
  double loss = 0, test = 0, right = 0, predictions = 0;
  for (const nlohmann::json& line : f.lines("a.jsonl")) {
    if (line.contains("loss")) loss = line["loss"];
    if (line.contains("evaluation"))
      test = line["evaluation"]["loss"], right = line["evaluation"]["right"],
      predictions = line["evaluation"]["predictions"];
  }
  for (const nlohmann::json& row : rows) {
    CHECK(row["steps"] == 30);
    CHECK(row["loss"] == loss);
    CHECK(row["test_loss"] == test);
    CHECK(row["accuracy"] == right / predictions);
  }
  CHECK(rows[1]["options"].empty());  // a CSV log has no options
  CHECK(rows[1]["course"] == rows[0]["course"]);
  CHECK(rows[1]["evaluations"] == rows[0]["evaluations"]);
  for (const char* picture : {"pictures/loss.svg", "pictures/course.svg"})
    CHECK((contains(read(f / picture), "a.jsonl") && contains(read(f / picture), "a.csv")));
  CHECK(contains(f.succeeds("plot @a.jsonl @a.csv @b.jsonl").out, "Options in which they differ"));
  CHECK_FALSE(contains(f.succeeds("plot @a.jsonl @a.csv").out, "Options in which they differ"));
}

TEST_CASE("plot: a file that is not a CSV log of a training is refused with its row") {
  const Folder f;
  f.succeeds("train +small --steps 3 -q --log @a.csv");
  const std::string log = read(f / "a.csv"), header = log.substr(0, log.find('\n') + 1);
  const auto refused = [&](const std::string& rows, const std::string& says) {
    write_text(f / "log.csv", header + rows);
    f.refuses("plot @log.csv", 3, f / "log.csv" + ": " + says);
  };
  refused("1,0.1,2,,0.5,,,,\n1,0.1,2,,0.5,,,,\n", "this is not a training log: its row for step 1 cannot be read\n");
  refused("2,0.1,2,,0.5,,,,\n1,0.1,2,,0.5,,,,\n", "this is not a training log: its row for step 1 cannot be read\n");
  refused("0,0.1,2,,0.5,,,,\n", "this is not a training log: its row for step 0 cannot be read\n");
  refused("7,,,,,1,0.5,1,-2\n", "this is not a training log: its row for step 7 cannot be read\n");
  refused("9,,,,,1,0.5,1,2\n3,,,,,1,0.5,1,2\n", "this is not a training log: its row for step 3 cannot be read\n");
  refused("1,0.1,2\n", "this is not a training log: '1,0.1,2'\n");
  refused("1\xff\x1b,0.1,2\n", "this is not a training log: '1\\xff\\x1b,0.1,2'\n");
  refused("2147483646,0.1,2,,0.5,,,,\n", "it has a step 2147483646, expected at most 10000000\n");
  write_text(f / "log.csv", log + "4,0.1,2");  // cut off
  CHECK(contains(f.succeeds("plot @log.csv --json @numbers").out, "log.csv"));
  CHECK(f.json("numbers")["trainings"][0]["steps"] == 3);
  write_text(f / "other.csv", "a,b\n1,2\n");
  f.refuses("plot @other.csv", 3, "it is not a log of isonorm train --log");
}
