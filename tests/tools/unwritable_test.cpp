// Outputs that cannot be written are refused before the first step; readers that go away and files that may not grow end
// a training saved, with one line and no half of a file.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

namespace {

struct Command {
  std::vector<std::string> words, outputs;  // "": the last word
};

// With work of minutes: who tries its outputs behind it does not come to that.
std::vector<Command> commands(const Folder& f) {
  std::vector<std::string> prove = small(f, "prove", {"--steps", "1000000", "-q"});
  std::vector<std::string> train = small(f, "train", {"--steps", "100000000", "-q"});
  return {{prove, {"--json", "--report", "--log"}},
          {train, {"--json", "--report", "--log", "--checkpoint"}},
          {{"prove", "--certificate", "--steps", "1000000", "-q"}, {"--json", "--report"}},
          {{"table", "--steps", "1000000", "-q"}, {"--json", "--report"}},
          {{"experiment", "perplexity", "--full"}, {"--json", "--report", "--svg"}},
          {{"audit", "--depth", "1000"}, {"--json", "--report"}},
          {{"convert", f.file("text.txt"), "--to", "rms_norm"}, {""}},
          {{"compare", f.file("text.txt"), f.file("text.txt")}, {"--json"}}};
}

int64_t files_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

}  // namespace

TEST_CASE("outputs that cannot be written are refused before the work, by every verb") {
  const Folder f;
  std::string deep = f.path.string();
  while (deep.size() < 4080) deep += "/" + std::string(std::min<size_t>(200, 4080 - deep.size()), 'd');
  fs::create_directory(f.path / "folder");
  for (const Command& command : commands(f))
    for (const std::string& output : command.outputs) {
      std::vector<std::string> names = {f.file(std::string(256, 'x')), deep, f.file("none/x"), f.file("text.txt/x")};
      // A log has no name beside its own, a folder of pictures only has to be one.
      if (output != "--log" && output != "--svg") names.push_back(f.file(std::string(235, 'x')));
      if (output != "--svg") names.push_back(f.file("folder"));
      for (const std::string& name : names) {
        std::vector<std::string> words = command.words;
        if (!output.empty()) words.push_back(output);
        words.insert(output.empty() ? words.begin() + 2 : words.end(), name);
        const ChildResult r = run_child(words);
        INFO(command.words[0] << " " << output << " " << name.substr(0, 300) << ": " << r.code << " " << r.err);
        CHECK(r.code == 4);
        CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
        CHECK(r.out.empty());
      }
    }
  CHECK(files_in(f.path) == 2);
  CHECK(files_in(f.path / "folder") == 0);
}

TEST_CASE("a training whose reader goes away ends as with Ctrl-C, saved") {
  const Folder f;
  const std::vector<std::string> train =
      small(f, "train", {"--steps", "100000000", "--evaluate-every", "50", "--checkpoint", f.file("c")});
  CHECK(run_child(train, {.hang_up_after = "step 50/"}).code == 130);
  CHECK(integer_at(load_checkpoint(f.file("c")).values, "step") >= 50);
  for (int signal : {SIGHUP, SIGXCPU}) {
    fs::remove(f.file("c"));
    CHECK(run_child(train, {.interrupt_after = "step 50/", .signal = signal}).code == 130);
    CHECK(fs::exists(f.file("c")));
  }
}

TEST_CASE("a file that may not grow is one line, and what was trained is saved") {
  const Folder f;
  const ChildOptions limited{.file_limit = 100'000};
  const ChildResult log = run_child(
      small(f, "train", {"-q", "--steps", "1000000", "--checkpoint", f.file("c"), "--log", f.file("l")}), limited);
  INFO(log.err);
  CHECK(log.code == 4);
  CHECK(contains(log.err, "l: writing failed: File too large"));
  CHECK(std::count(log.err.begin(), log.err.end(), '\n') == 1);
  CHECK(integer_at(load_checkpoint(f.file("c")).values, "step") > 100);
  CHECK(files_in(f.path) == 4);  // text, two checkpoints, log
  // A result of more than that is not begun.
  std::vector<std::string> wide = small(f, "train", {"-q", "--steps", "1", "--checkpoint", f.file("d")});
  *(std::find(wide.begin(), wide.end(), "--width") + 1) = "128";
  const ChildResult large = run_child(wide, limited);
  INFO(large.err);
  CHECK(large.code == 4);
  CHECK(contains(large.err, "there is no room for"));
  CHECK(std::count(large.err.begin(), large.err.end(), '\n') == 1);
  CHECK(files_in(f.path) == 4);
}

TEST_CASE("a training that was killed behind its last test has every step and test once in its log") {
  const Folder f;
  const auto arguments = small(f, "train",
                               {"-q", "--steps", "20", "--evaluate-every", "10", "--checkpoint", f.file("c"), "--log",
                                f.file("l"), "--json", f.file("j")});
  REQUIRE(run_child(arguments).code == 0);
  const std::string whole = read(f.file("l"));
  const size_t last = whole.rfind("{\"sentence\"");
  REQUIRE(last != whole.npos);
  for (int again = 0; again < 2; ++again) {
    if (again == 0) fs::resize_file(f.file("l"), last);  // killed behind the last test
    REQUIRE(run_child(arguments).code == 0);
    std::map<int, int> steps, tests;
    std::istringstream lines(read(f.file("l")));
    for (std::string line; std::getline(lines, line);) {
      const auto j = nlohmann::json::parse(line);
      if (j.contains("step")) ++steps[j["step"]];
      if (j.contains("evaluation")) ++tests[j["evaluation"]["step"]];
    }
    CHECK(steps.size() == 20);
    CHECK(tests.size() == 2);
    for (const auto& [step, n] : steps) CHECK(n == 1);
    for (const auto& [step, n] : tests) CHECK(n == 1);
    CHECK(nlohmann::json::parse(read(f.file("j")))["tables"]["Test"].back()["after step"] == 20);
  }
}

TEST_CASE("values of a checkpoint do not speak to the terminal, nor fill it") {
  const Folder f;
  const auto arguments = small(f, "train", {"--steps", "2", "--checkpoint", f.file("c")});
  REQUIRE(run_child(arguments).code == 0);
  for (const std::string& value : {std::string("\x1b]0;owned\x07"), std::string(1'000'000, 'x')})
    for (const char* name : {"earlier", "lr", "connection", "step", "model.kind", "init"}) {
      Checkpoint c = load_checkpoint(f.file("c"));
      c.values[name] = value;
      save_checkpoint(f.file("forged"), c);
      std::vector<std::string> forged = arguments;
      forged.back() = f.file("forged");
      for (const ChildResult& r : {run_child(forged), run_child({"verify", f.file("forged"), f.file("c")}),
                                   run_child({"audit", "--checkpoint", f.file("forged")})}) {
        INFO(name << ": " << r.out.substr(0, 500) << r.err.substr(0, 500));
        CHECK((r.out + r.err).size() < 12'000);
        for (const char control : {'\x1b', '\x07', '\x9b'}) CHECK((r.out + r.err).find(control) == std::string::npos);
      }
    }
}
