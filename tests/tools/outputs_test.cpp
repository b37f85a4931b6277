// Outputs of train and other verbs: none overwrites another one, numbers are finite, a log has each step once.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <numeric>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

// The steps that a log has, in order.
std::vector<int> steps_of(const Folder& f, const std::string& log) {
  std::vector<int> steps;
  for (const auto& line : f.lines(log))
    if (line.contains("step")) steps.push_back(line["step"]);
  return steps;
}

std::vector<int> up_to(int n) {
  std::vector<int> steps(n);
  std::iota(steps.begin(), steps.end(), 1);
  return steps;
}

}  // namespace

TEST_CASE("outputs: one that is another is refused under any name; a device takes any number") {
  const Folder f;
  fs::create_symlink("later", f.path / "dangling");
  for (const char* outputs : {"--checkpoint @c --log @c", "--checkpoint @c --json @./c",
                              "--checkpoint @c --report @c.previous", "--log @later --json @dangling"}) {
    f.refuses(std::string("train +small --steps 1 -q ") + outputs, 2, "name the same file");
    CHECK_FALSE(fs::exists(f / "c"));
  }
  // The device is one of our own, where we may make it.
  if (mknod((f / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;
  f.succeeds("train +small --steps 1 --log @null --json @null");
  CHECK(fs::is_character_file(f / "null"));
}

TEST_CASE("outputs: a log may be a pipe, from the start and gone on with") {
  const Folder f;
  REQUIRE(mkfifo((f / "pipe").c_str(), 0600) == 0);
  const int reader = open((f / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  std::string command = "timeout -s KILL 600 " ISONORM_PROGRAM;
  for (const std::string& word : f.words("train +small --steps 2 -q --checkpoint @c --log @pipe"))
    command += " " + word;
  for (int run = 0; run < 2; ++run) CHECK(std::system((command + " > " + f / "out").c_str()) == 0);
  std::string said(1 << 16, ' ');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, said.data(), said.size()))));
  close(reader);
  write_text(f / "log", said);
  CHECK(steps_of(f, "log") == up_to(2));
}

TEST_CASE("outputs: with standard error closed no file gets its lines") {
  const Folder f;
  CHECK(f.succeeds("train +small --steps 25 --log @l", {.close_stderr = true}).err.empty());
  CHECK(steps_of(f, "l") == up_to(25));
}

TEST_CASE("outputs: a log that is gone on with after a kill has every step and test once") {
  const Folder f;
  const std::string train =
      "train +small --steps 900 --save-every 100 --evaluate-every 50 --checkpoint @c --log @l --json @j";
  f.gives(128 + SIGKILL, train, {.interrupt_after = "step 270/", .signal = SIGKILL});
  // Killed in a save it may have logged nothing after it, so here is more.
  const std::string next = std::to_string(steps_of(f, "l").size() + 1);
  std::ofstream(f / "l", std::ios::app) << "{\"step\": " << next << "}\n{\"evaluation\": {\"step\": " << next
                                        << "}}\n{\"step\": 9";
  for (const char* killed : {"in a line", "behind its last test", "not at all"}) {
    INFO(killed);
    if (killed[0] == 'b') fs::resize_file(f / "l", read(f / "l").rfind("{\"sentence\""));
    f.succeeds(train);
    CHECK(steps_of(f, "l") == up_to(900));
    std::vector<int> tests;
    for (const auto& line : f.lines("l"))
      if (line.contains("evaluation")) tests.push_back(line["evaluation"]["step"]);
    REQUIRE(tests.size() == 18);
    for (int i = 0; i < 18; ++i) CHECK(tests[i] == 50 * (i + 1));
    CHECK(f.json("j")["evaluations"].back()["step"] == 900);
  }
}

TEST_CASE("outputs: a new training keeps other trainings' entries, and refuses a file that is not a log") {
  const Folder f;
  const std::string train = "train +small -q --steps 2 --log @l --seed ", log = f / "l";
  f.succeeds(train + "1");
  for (int again : {0, 1}) {  // once more, in place of the first time
    INFO(again);
    f.succeeds(train + "2");
    CHECK(steps_of(f, "l") == std::vector<int>{1, 2, 1, 2});
  }
  for (const std::string file : {"Notes of a person", "{\"name\":1}", "{\n}\n"}) {
    write_text(log, file);
    f.refuses(train + "1", 3, log);
    f.refuses("prove +small -q --log @l", 3, log);
    CHECK(read(log) == file);
  }
  fs::remove(log);
  f.succeeds(train + "1");
  const std::string whole = read(log);
  fs::resize_file(log, whole.size() - 1);  // the end of the last line
  f.succeeds(train + "2");
  CHECK(read(log).starts_with(whole));
  const int held = open(log.c_str(), O_RDONLY);
  REQUIRE(flock(held, LOCK_EX) == 0);
  f.refuses(train + "1", 4, log);
  close(held);
}

TEST_CASE("outputs: numbers that are not finite end with 6 and never become a checkpoint") {
  const Folder f;
  const std::string c = f / "c", train = "train +small -q --warmup 0 --checkpoint @c ";
  // The last update leaves infinities; no later loss shows them.
  f.refuses(train + "--steps 1 --lr 1e300", 6, "isonorm train: after step 1 ");
  CHECK_FALSE(fs::exists(c));

  // The first step's weights are finite and saved, the second loss is not: the file stays.
  f.refuses(train + "--steps 2 --save-every 1 --lr 3e37", 6, "step 2");
  CHECK(load_checkpoint(c).values.at("step") == "1");

  // One that has them all the same is not gone on with.
  fs::remove(c);
  f.succeeds(train + "--steps 3");
  Checkpoint bad = load_checkpoint(c);
  Tensor w = bad.weights.begin()->second;
  w.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  save_checkpoint(c, bad);
  f.refuses(train + "--steps 3", 6, c + ": after step 3 " + bad.weights.begin()->first);
}

TEST_CASE("train makes no file under its name only to remove it: another process could take it as its lock") {
  const Folder f;
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(inotify_add_watch(watch, f.path.c_str(), IN_CREATE) >= 0);
  f.succeeds("train +small --steps 1 -q --checkpoint @c --log @log");
  std::map<std::string, int> made;
  alignas(inotify_event) char events[16'384];
  for (ssize_t n; (n = ::read(watch, events, sizeof events)) > 0;)
    for (const char* at = events; at < events + n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      ++made[event->name];
      at += sizeof(inotify_event) + event->len;
    }
  close(watch);
  CHECK(made["c.lock"] == 1);
  CHECK(made["log"] == 1);
  CHECK(made["c.previous"] == 0);
  CHECK(made["c.toml"] == 0);  // the file gets its name only by a rename
}

TEST_CASE("a NaN or infinite weight ends evaluate and sample and audit and train --init with 6") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    Checkpoint c = load_checkpoint(f / "c");
    c.weights.at("head.weight").mutable_data<float>()[3] = static_cast<float>(value);
    save_checkpoint(f / "bad", c);
    const std::string says = f / "bad" + ": head.weight holds NaN or infinity";
    f.refuses("evaluate @bad --data @text.txt", 6, says);
    f.refuses("evaluate @bad --data @text.txt --json @r.json", 6, says);
    CHECK_FALSE(std::filesystem::exists(f / "r.json"));
    f.refuses("sample @bad a", 6, says);
    f.refuses("audit --checkpoint @bad", 6, says);
    f.refuses("train +small --steps 1 -q --init @bad", 6, "head.weight holds NaN or infinity");
  }
}

TEST_CASE("a loss or logits that are not finite end evaluate and sample and lr-find with 6") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  Checkpoint c = load_checkpoint(f / "c");
  float* weights = c.weights.at("head.weight").mutable_data<float>();
  for (int64_t i = 0; i < c.weights.at("head.weight").numel(); ++i) weights[i] *= 3e38F;
  save_checkpoint(f / "large", c);
  f.refuses("evaluate @large --data @text.txt", 6, "its loss is not a finite number");
  CHECK(contains(
      f.gives(6, "sample @large a").err,
      "isonorm sample: " + (f / "large") + ": generate: the largest logit is not finite: its weights are too"));
  f.refuses("lr-find +small --layer-scale 3e38 --no-final-norm -q", 6, "the loss of step 1 is not a finite number");
}
