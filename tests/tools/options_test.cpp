// Options as a person gives them: what the printed command repeats, what a checkpoint takes over, what is refused.
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using nlohmann::json;
using Words = std::vector<std::string>;

namespace {

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

json result_of(const Folder& f, const Words& words) {
  const ChildResult r = run_child(words + Words{"-q", "--json", f.file("json")});
  INFO(r.err);
  REQUIRE((r.code == 0 || r.code == 5));  // of so few steps a proof may be undecided
  return json::parse(read(f.file("json")));
}

// The command without quotes, as no word here needs any.
Words words_of(const std::string& command) {
  std::istringstream in(command);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  words.erase(words.begin());
  return words;
}

}  // namespace

TEST_CASE("the printed command repeats a run, also where options follow from others") {
  const Folder f;
  const Words gpt = {"--model", "gpt", "--data", f.file("text.txt"), "--context", "8", "--batch", "4", "--depth", "1"};
  for (const Words& more : std::vector<Words>{
           {"--width", "128", "--heads", "4", "--mlp-width", "256"},
           {"--width", "16", "--heads", "2", "--head-width", "16"},
           {"--width", "16", "--heads", "8", "--kv-heads", "4"},
           {"--width", "8", "--heads", "2", "--optimizer", "sgd", "--weight-decay", "0.01"},
           {"--width", "8", "--heads", "2", "--no-bias", "--affine=true", "--seed", "18446744073709551615"}}) {
    INFO(json(more).dump());
    for (const char* verb : {"train", "prove"}) {
      const Words controls = std::string_view(verb) == "prove" ? Words{"--controls", "1"} : Words{};
      const json first = result_of(f, Words{verb} + gpt + more + controls + Words{"--steps", "3"}),
                 again = result_of(f, words_of(first["command"]));
      CHECK(again["options"] == first["options"]);
      CHECK(again["curves"]["loss"] == first["curves"]["loss"]);
      CHECK(again["command"] == first["command"]);
    }
  }
  const json steps =
      result_of(f, Words{"prove"} + gpt +
                       Words{"--width", "8", "--heads", "2", "--dtype", "f32", "--steps", "200", "--controls", "1"});
  CHECK(contains(steps["command"], "--steps 200"));
}

TEST_CASE("audit and table print the command that they were given") {
  const Folder f;
  const Words audit = {"audit", "--model", "gpt", "--width",   "8", "--depth",
                       "1",     "--heads", "2",   "--context", "8", "--tied"};
  CHECK(words_of(result_of(f, audit)["command"]).size() == audit.size());
  CHECK(result_of(f, words_of(result_of(f, audit)["command"]))["options"]["tied"] == true);
}

TEST_CASE("a flag takes true and false alone, and no option takes an empty word") {
  const Folder f;
  for (const Words& words : std::vector<Words>{{"--tied=maybe"},
                                               {"--no-bias=99999999999999999999"},
                                               {"--affine=2"},
                                               {"--steps", ""},
                                               {"--weight-decay", ""}}) {
    const ChildResult r = run_child(small(f, "train", words));
    INFO(words[0] << ": " << r.err);
    CHECK(r.code == 2);
    CHECK(r.err.starts_with("isonorm train: "));
  }
}

TEST_CASE("what a checkpoint says is held, beside a published size, too; what is not known of it is refused") {
  const Folder f;
  const Words sized = {"train",   "--preset",    "9m",      "--data", f.file("text.txt"), "--context", "8",
                       "--batch", "4",           "--width", "8",      "--depth",          "1",         "--heads",
                       "2",       "--mlp-width", "16",      "-q",     "--checkpoint",     f.file("p")};
  REQUIRE(run_child(sized + Words{"--steps", "3", "--lr", "0.5", "--warmup", "1"}).code == 0);
  CHECK(run_child(sized).code == 0);  // which has nothing to do any more
  CHECK(load_checkpoint(f.file("p")).values.at("lr") == "0.5");
  const Checkpoint whole = load_checkpoint(f.file("p"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"unknown_option", "5"}, {"width", "9"}, {"threads", "99999"}, {"resume_at", "2"}}) {
    INFO(name);
    Checkpoint forged = whole;
    forged.values[name] = value;
    save_checkpoint(f.file("p"), forged);
    CHECK(run_child(sized).code == 3);
  }
}

TEST_CASE("whole numbers on the command line are decimal") {
  const Folder f;
  for (const Words& words : {small(f, "train", {"--save-every", "0x10"}),
                             small(f, "prove", {"--controls", "0X1"}),
                             {"table", "--steps", "0x10"},
                             small(f, "train", {"--seed", "0x10"})}) {
    const ChildResult r = run_child(words);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "is not a decimal number"));
  }
  const ChildResult eight = run_child({"perturb", f.file("none"), f.file("out"), "--ulp", "02000"});
  CHECK(contains(eight.err, "2000"));  // octal it would be 1024, which is allowed
}

TEST_CASE("audit --checkpoint takes equal values whatever their words, and refuses others") {
  const Folder f;
  REQUIRE(run_child(small(f, "train", {"--steps", "1", "--checkpoint", f.file("c")})).code == 0);
  const Words audit = {"audit", "--checkpoint", f.file("c"), "--batch", "2", "-q"};
  CHECK(run_child(audit + Words{"--eps", "1e-5", "--width", "08", "--head-width", "0"}).code == 0);
  const ChildResult other = run_child(audit + Words{"--eps", "1e-6"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "--eps: 1e-6, in "));
  CHECK(run_child({"audit", "--letters", "0"}).code == 2);
}
