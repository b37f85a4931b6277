// isonorm experiment, run as a person runs it.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"

using namespace isonorm;

namespace {
bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("experiment: the list names every claim with its source") {
  const ChildResult r = run_child({"experiment", "--list"});
  CHECK(run_child({"experiment"}).out == r.out);
  CHECK(r.code == 0);
  for (const char* part : {"invariance", "trajectories", "conversion", "controls", "1910.07467", "2305.14858"})
    CHECK(contains(r.out, part));
}

TEST_CASE("experiment: a confirmed claim is 0, with table, report, JSON and pictures") {
  const TempFolder folder;
  const ChildResult r = run_child({"experiment", "invariance", "--seed", "3", "--report", folder / "r.html", "--json",
                                   folder / "r.json", "--svg", folder / "pictures"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  for (const char* part : {"rms_norm", "W + 1 c^T", "\nConfirmed: ", "It would have been refuted by "})
    CHECK(contains(r.out, part));
  const auto object = nlohmann::json::parse(std::ifstream(folder / "r.json"));
  CHECK(object["values"]["experiment"] == "invariance");
  CHECK(object["verdict"] == "Confirmed");
  CHECK(object["environment"]["seed"] == 3);
  CHECK(object["tables"]["What a norm does not see"].size() > 2);
  CHECK(object["curves"].size() >= 1);
  for (const char* file : {"r.html", "pictures/invariance-table.svg", "pictures/invariance-gradient.svg"})
    CHECK(std::filesystem::file_size(folder / file) > 1000);
}

TEST_CASE("experiment: what is wrong is said in one line before the work begins") {
  const auto wrong = [](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const ChildResult r = run_child(arguments);
    INFO(r.err);
    CHECK(r.code == code);
    CHECK(r.out.empty());
    CHECK(r.err.rfind("isonorm experiment: ", 0) == 0);
    CHECK(r.err.find('\n') == r.err.size() - 1);
    CHECK(contains(r.err, part));
  };
  wrong({"experiment", "alchemy"}, 2, "alchemy");
  wrong({"experiment", "invariance", "--seed", "-1"}, 2, "--seed");
  wrong({"experiment", "invariance", "--json", "/no/such/folder/file"}, 4, "/no/such/folder/file");
  wrong({"experiment", "invariance", "--svg", "/no/such/folder"}, 4, "/no/such/folder: cannot be made a folder");
  wrong({"experiment", "invariance", "--svg", "/dev/null"}, 4, "/dev/null: ");
  wrong({"experiment", "trajectories", "--data", "/no/such/file"}, 4, "/no/such/file");
  wrong({"experiment", "invariance", "--data", "/no/such/file"}, 2, "--data");
  wrong({"experiment", "invariance", "--seeds", "100"}, 2, "--seeds");
  wrong({"experiment", "controls", "--seeds", "23"}, 2, "--seeds");
  wrong({"experiment", "warm-up", "--device", "cuda"}, 2, "--device: warm-up computes on the CPU");
  wrong({"experiment", "invariance", "--full"}, 2, "--full: invariance has one scale");
  wrong({"experiment", "zoo", "--data", "text"}, 2, "--data: zoo reads no data");
}
