// isonorm experiment, run as a person runs it.
#include "tests/tools/small_run.h"

using namespace isonorm;

TEST_CASE("experiment: the list names every claim with its source") {
  const Folder f;
  const std::string list = f.succeeds("experiment --list").out;
  CHECK(f.run("experiment").out == list);
  for (const char* part : {"invariance", "trajectories", "conversion", "controls", "1910.07467", "2305.14858"})
    CHECK(contains(list, part));
}

TEST_CASE("experiment: a confirmed claim is 0, with table, report, JSON and pictures") {
  const Folder f;
  const ChildResult r = f.succeeds("experiment invariance --seed 3 --report @r.html --json @r.json --svg @pictures");
  CHECK(r.err.empty());
  for (const char* part : {"rms_norm", "W + 1 c^T", "\nConfirmed", "It would have been refuted by "})
    CHECK(contains(r.out, part));
  const auto object = f.json("r.json");
  CHECK(object["experiment"] == "invariance");
  CHECK(object["verdict"] == "confirmed");
  CHECK(object["environment"]["seed"] == 3);
  CHECK(object["tables"][0]["heading"] == "What a norm does not see");
  CHECK(object["tables"][0]["rows"].size() > 2);
  CHECK(object["figures"].size() >= 1);
  for (const char* file : {"r.html", "pictures/invariance-table.svg", "pictures/invariance-gradient.svg"})
    CHECK(std::filesystem::file_size(f / file) > 1000);
}

TEST_CASE("experiment: faults are reported in one line before the work begins") {
  const Folder f;
  const struct {
    const char* words;
    int code;
    const char* says;
  } wrong[] = {{"alchemy", 2, "alchemy"},
               {"invariance --seed -1", 2, "--seed"},
               {"invariance --svg /proc/none/folder", 4, "/proc/none/folder: cannot be made a folder"},
               {"invariance --svg /dev/null", 4, "/dev/null: "},
               {"trajectories --data /no/such/file", 4, "/no/such/file"},
               {"invariance --data /no/such/file", 2, "--data"},
               {"invariance --seeds 100", 2, "--seeds"},
               {"controls --seeds 23", 2, "--seeds"},
               {"warm-up --device cuda", 2, "--device: warm-up computes on the CPU"},
               {"invariance --full", 2, "--full: invariance has one scale"},
               {"zoo --data text", 2, "--data: zoo reads no data"}};
  for (const auto& [words, code, says] : wrong) f.refuses(std::string("experiment ") + words, code, says);
}
