// What train and the others write: never over one another, never nonsense over a good file, no step twice in a log.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

namespace {

// The steps that a log has, in order.
std::vector<int> steps_of(const std::string& log) {
  std::vector<int> steps;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains("step")) steps.push_back(object["step"]);
  }
  return steps;
}

std::vector<int> up_to(int n) {
  std::vector<int> steps;
  for (int i = 1; i <= n; ++i) steps.push_back(i);
  return steps;
}

}  // namespace

TEST_CASE("outputs: one that is another, or an input, is refused under any name") {
  const Folder folder;
  const std::string text = folder.file("text.txt"), before = read(text);
  std::filesystem::create_symlink("text.txt", folder.path / "link");
  std::filesystem::create_symlink("later", folder.path / "dangling");
  std::filesystem::create_hard_link(text, folder.path / "hard");
  const std::string c = folder.file("c"), dotted = (folder.path / "." / "c").string();
  const std::vector<std::vector<std::string>> wrong = {
      {"--checkpoint", c, "--log", c},
      {"--checkpoint", c, "--json", dotted},
      {"--checkpoint", c, "--report", c + ".previous"},
      {"--log", folder.file("later"), "--json", folder.file("dangling")},
      {"--log", text},
      {"--json", folder.file("link")},
      {"--checkpoint", folder.file("hard")},
      {"--init", folder.file("start"), "--log", folder.file("start")},
      {"--report", (folder.path / "c" / ".." / "text.txt").string()}};
  for (const auto& options : wrong) {
    std::vector<std::string> more = {"--steps", "1", "-q"};
    more.insert(more.end(), options.begin(), options.end());
    const ChildResult r = run_child(small(folder, "train", more));
    INFO(options[1] << ": " << r.err);
    CHECK(r.code == 2);
    CHECK((contains(r.err, "name the same file") || contains(r.err, "which would be lost")));
    CHECK_FALSE(std::filesystem::exists(c));
  }
  CHECK(run_child(small(folder, "prove", {"--log", text})).code == 2);
  CHECK(run_child({"compare", text, folder.file("hard"), "--json", text}).code == 2);
  CHECK(read(text) == before);
  // A device takes any number of them. It is one of our own, where we may make it.
  const std::string null = folder.file("null");
  if (mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;
  CHECK(run_child(small(folder, "train", {"--steps", "1", "--log", null, "--json", null})).code == 0);
  CHECK(std::filesystem::is_character_file(null));
}

TEST_CASE("outputs: a log may be a pipe, from the start and gone on with") {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  std::string command = "timeout -s KILL 20 " ISONORM_PROGRAM;
  for (const std::string& word :
       small(folder, "train", {"--steps", "2", "-q", "--checkpoint", folder.file("c"), "--log", pipe}))
    command += " " + word;
  for (int run = 0; run < 2; ++run) CHECK(std::system((command + " > " + folder.file("out")).c_str()) == 0);
  std::string said(1 << 16, ' ');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, said.data(), said.size()))));
  close(reader);
  CHECK(steps_of(said) == up_to(2));
}

TEST_CASE("outputs: with standard error closed no file gets what is meant for it") {
  const Folder folder;
  const ChildResult r =
      run_child(small(folder, "train", {"--steps", "25", "--log", folder.file("l")}), {.close_stderr = true});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(steps_of(read(folder.file("l"))) == up_to(25));
}

TEST_CASE("outputs: a log that is gone on with after a kill has every step once") {
  const Folder folder;
  const std::vector<std::string> arguments = small(folder, "train",
                                                   {"--steps", "900", "--save-every", "100", "--evaluate-every", "50",
                                                    "--checkpoint", folder.file("c"), "--log", folder.file("l")});
  CHECK(run_child(arguments, {.interrupt_after = "step 270/", .signal = SIGKILL}).code == 128 + SIGKILL);
  // Killed in a save it may have logged nothing after it, so here is more.
  const std::string next = std::to_string(steps_of(read(folder.file("l"))).size() + 1);
  std::ofstream(folder.file("l"), std::ios::app)
      << "{\"step\": " << next << "}\n{\"evaluation\": {\"step\": " << next << "}}\n{\"step\": 9";
  const ChildResult r = run_child(arguments);
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(steps_of(read(folder.file("l"))) == up_to(900));
}

TEST_CASE("outputs: a training that begins keeps what others logged, and takes no file that is no log") {
  const Folder folder;
  const std::string log = folder.file("l");
  const auto train = [&](const std::string& seed) {
    return run_child(small(folder, "train", {"-q", "--steps", "2", "--seed", seed, "--log", log})).code;
  };
  CHECK(train("1") == 0);
  CHECK(train("2") == 0);
  CHECK(steps_of(read(log)) == std::vector<int>{1, 2, 1, 2});
  CHECK(train("2") == 0);  // once more, in place of the first time
  CHECK(steps_of(read(log)) == std::vector<int>{1, 2, 1, 2});
  for (const std::string& file :
       {std::string("Notes of a person"), std::string("{\"name\":1}"), std::string("{\n}\n")}) {
    std::ofstream(log) << file;
    CHECK(train("1") == 3);
    CHECK(run_child(small(folder, "prove", {"-q", "--log", log})).code == 3);
    CHECK(read(log) == file);
  }
  std::filesystem::remove(log);
  CHECK(train("1") == 0);
  const std::string whole = read(log);
  std::filesystem::resize_file(log, whole.size() - 1);  // the end of the last line
  CHECK(train("2") == 0);
  CHECK(read(log).starts_with(whole));
  const int held = open(log.c_str(), O_RDONLY);
  REQUIRE(flock(held, LOCK_EX) == 0);
  CHECK(train("1") == 4);
  close(held);
}

TEST_CASE("outputs: numbers that are not finite end with 6 and never become a checkpoint") {
  const Folder folder;
  const std::string c = folder.file("c");
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"-q", "--warmup", "0", "--checkpoint", c};
    all.insert(all.end(), more.begin(), more.end());
    return run_child(small(folder, "train", all));
  };
  // The last update leaves infinities; no later loss shows them.
  const ChildResult last = train({"--steps", "1", "--lr", "1e300"});
  INFO(last.err);
  CHECK(last.code == 6);
  CHECK(contains(last.err, "isonorm train: after step 1 "));
  CHECK(std::count(last.err.begin(), last.err.end(), '\n') == 1);
  CHECK_FALSE(std::filesystem::exists(c));

  // The first step's weights are finite and saved, the second loss is not: the file stays.
  const ChildResult second = train({"--steps", "2", "--save-every", "1", "--lr", "3e37"});
  CHECK(second.code == 6);
  CHECK(contains(second.err, "step 2"));
  CHECK(load_checkpoint(c).values.at("step") == "1");

  // One that has them all the same is not gone on with.
  std::filesystem::remove(c);
  REQUIRE(train({"--steps", "3"}).code == 0);
  Checkpoint bad = load_checkpoint(c);
  Tensor w = bad.weights.begin()->second;
  w.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  save_checkpoint(c, bad);
  const ChildResult resumed = train({"--steps", "3"});
  CHECK(resumed.code == 6);
  CHECK(contains(resumed.err, c + ": after step 3 " + bad.weights.begin()->first));
}
