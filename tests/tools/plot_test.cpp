// What isonorm plot makes of logs.
#include "core/error.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using Catch::Matchers::Contains;

TEST_CASE("plot: where trainings ended, how they differ, and their curves") {
  const Folder f;
  const std::string train = "train +small --steps 30 -q --evaluate-every 10 ";
  f.succeeds(train + "--log @a.jsonl");
  f.succeeds(train + "--log @b.jsonl --lr 0.25");
  f.succeeds(train + "--log @b.jsonl --lr 0.5");  // the last one in the file is shown
  const std::string out =
      f.succeeds("plot @a.jsonl @b.jsonl --svg @pictures --report @page.html --json @numbers.json").out;
  CHECK_THAT(out, Contains("Options in which they differ") && Contains("lr"));
  CHECK_THAT(out, !Contains("width"));
  for (const char* picture : {"pictures/loss.svg", "pictures/course.svg"})
    CHECK_THAT(read(f / picture), Contains("<svg") && Contains("a.jsonl") && Contains("b.jsonl"));
  CHECK_THAT(read(f / "page.html"), Contains("Steps per second") && Contains("Test loss"));

  const nlohmann::json numbers = f.json("numbers.json");
  const auto& rows = numbers["tables"]["Trainings"];
  REQUIRE(rows.size() == 2);
  CHECK(numbers["tables"]["Options in which they differ"][1]["lr"] == "0.5");
  for (const auto& [row, log] : {std::pair{rows[0], "a.jsonl"}, {rows[1], "b.jsonl"}}) {
    double loss = 0, test = 0;
    for (const nlohmann::json& line : f.lines(log)) {
      if (line.contains("loss")) loss = line["loss"];
      if (line.contains("evaluation")) test = line["evaluation"]["loss"];
    }
    CHECK(row["steps"] == 30);
    CHECK(row["loss"] == loss);  // a hundredth of 30 steps is one
    CHECK(row["test loss"] == test);
  }

  write_text(f / "empty", "");
  write_text(f / "other", "{\"step\": 1, \"loss\": 2}\nnothing\n");
  for (const char* log : {"@empty", "@other"}) f.refuses(text("plot ", log), 3, "it is no log of isonorm train --log");
  f.refuses("plot @none", 4, "none: cannot be read");
  f.refuses("plot @a.jsonl --json @a.jsonl", 2, "a.jsonl");
}
