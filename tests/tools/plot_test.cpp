// isonorm plot: pages, pictures and numbers of logs, CSV logs among them.
#include <sys/stat.h>

#include <thread>

#include "tests/tools/small_run.h"

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
  const auto& rows = numbers["trainings"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[1]["options"]["lr"] == 0.5);
  for (const auto& [row, log] : {std::pair{rows[0], "a.jsonl"}, {rows[1], "b.jsonl"}}) {
    double loss = 0, test = 0;
    for (const nlohmann::json& line : f.lines(log)) {
      if (line.contains("loss")) loss = line["loss"];
      if (line.contains("evaluation")) test = line["evaluation"]["loss"];
    }
    CHECK(row["steps"] == 30);
    CHECK(row["loss"] == loss);  // a hundredth of 30 steps is one
    CHECK(row["test_loss"] == test);
  }

  // Parts count their own time; what is no step and no test is passed over.
  std::string log = "{\"manifest\": {\"options\": {}}}\n";
  const auto step = [](const char* n, double seconds) {
    return text("{\"step\": ", n, ", \"lr\": 1, \"loss\": 2, \"gradient_norm\": null, \"seconds\": ", seconds, "}\n");
  };
  for (int i = 1; i <= 9; ++i) log += step(text(i).c_str(), i <= 6 ? i : 0.5 + 2 * (i - 6));
  write_text(f / "parts",
             log + step("4294967299", 1) + step("2.5", 1) +
                 "{\"evaluation\": {\"step\": 3, \"loss\": 1, \"right\": 1, \"predictions\": 0}}\n"
                 "{\"evaluation\": {\"step\": 3, \"loss\": 1, \"right\": 1e300, \"predictions\": 1e300}}\n"
                 "{\"evaluation\": {\"step\": 3, \"loss\": 1, \"right\": 1, \"predictions\": 18446744073709551615}}\n");
  f.succeeds("plot @parts --json @parts.json");
  const auto row = f.json("parts.json")["trainings"][0];
  CHECK(row["steps"] == 9);
  CHECK(!row["steps_per_second"].is_number());  // the second part has too few steps
  CHECK(!row["accuracy"].is_number());
  // Losses of any size are drawn, and losses that differ by one ulp.
  for (const auto& [name, loss] : {std::pair{"huge", "1e300"}, {"close", "2.0000000000000004"}}) {
    std::string line = step("10", 1);
    write_text(f / name, log + line.replace(line.find("2,"), 1, loss));
    f.succeeds(text("plot @", name, " --report @page.html"));
    CHECK_THAT(read(f / "page.html"), !Contains("NaN") && !Contains("nan ") && !Contains("inf "));
  }
  write_text(f / "far", log + step("2147483646", 1));
  f.refuses("plot @far", 3, "it has a step 2147483646, expected at most 10000000");
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  std::thread writer([&] { write_text(f / "pipe", log); });
  f.refuses("plot @pipe", 4, "it cannot be read twice");
  writer.join();

  write_text(f / "empty", "");
  write_text(f / "other", "{\"step\": 1, \"loss\": 2}\nnothing\n");
  for (const char* log : {"@empty", "@other"})
    f.refuses(text("plot ", log), 3, "it is not a log of isonorm train --log");
  f.refuses("plot @none", 4, "none: cannot be read");
  f.refuses("plot @a.jsonl --json @a.jsonl", 2, "a.jsonl");
}

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
