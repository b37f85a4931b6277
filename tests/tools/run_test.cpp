// prove and train run as a person runs them, on a small language model: exit codes, files, progress, Ctrl-C, resuming.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using nlohmann::json;

TEST_CASE("prove and train take the features of the Transformer from the command line") {
  const Folder folder;
  const std::vector<std::string> features = {
      "--steps",     "8",  "--activation", "swiglu",       "--positions", "rotary", "--tied",
      "--mlp-width", "11", "--no-bias",    "--head-width", "6",           "--json", folder.file("p.json")};
  const ChildResult r = run_child(small(folder, "prove", features));
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  const json p = json::parse(read(folder.file("p.json")));
  const std::string command = p["command"];
  CHECK(contains(command,
                 " --tied --width 8 --depth 1 --heads 2 --head-width 6 --mlp-width 11 --activation swiglu --positions "
                 "rotary --no-bias --"));
  CHECK(p["options"]["bias"] == false);
  // token, qkv, proj, gate, fc1, fc2: no positions, no biases, no head of its own
  const int64_t table = p["tables"]["Runs"][0]["parameters"].get<int64_t>() - 8 * (3 * 12 + 12 + 3 * 11);
  CHECK(table == 8 * 7);  // the characters of the text
  CHECK(run_child(small(folder, "train", features)).code == 0);
}

TEST_CASE("prove: equivalent forms give 0, the table, JSON, report and log") {
  const Folder folder;
  const ChildResult r = run_child(small(folder, "prove",
                                        {"--steps", "30", "--json", folder.file("p.json"), "--report",
                                         folder.file("p.html"), "--log", folder.file("p.jsonl")}));
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  for (const char* part :
       {"rms_norm", "crms_norm", "crms_isometric", "layer_norm + 1 ulp (seed 4)", "rms_norm projected_once",
        "crms_norm compressed_plain", "expected", "observed", "\nEquivalent: after 30 steps"})
    CHECK(contains(r.out, part));
  CHECK(contains(r.err, "training 30/30  loss "));
  CHECK_FALSE(contains(r.out + r.err, "\x1b"));
  CHECK_FALSE(contains(r.err, "\r"));
  const json j = json::parse(read(folder.file("p.json")));
  CHECK(j["verdict"] == "Equivalent");
  const json& runs = j["tables"]["Runs"];
  REQUIRE(runs.size() == 1 + 4 + 5);
  CHECK(j["curves"]["loss"]["The forms"]["rms_norm"].size() == 30);
  CHECK(j["curves"]["loss"]["The negative controls"]["rms_norm projected_once"].size() == 20);
  CHECK(j["values"]["tested on"] == 72);  // nine windows of eight characters in the 80 that are held out
  CHECK(runs[5]["test accuracy"].is_number());
  CHECK(runs[5]["predicts otherwise"].is_number_integer());
  CHECK(runs[8]["test accuracy"] == "");
  CHECK(j["environment"]["data, SHA-256"].get<std::string>().size() == 64);
  CHECK(contains(read(folder.file("p.html")), "<strong>Equivalent</strong>"));
  const std::string log = read(folder.file("p.jsonl"));
  CHECK(std::count(log.begin(), log.end(), '\n') == 1 + 30 + 20 + 1);
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) CHECK(json::parse(line).is_object());
}

TEST_CASE("prove: -q leaves the sentence, --forms chooses") {
  const Folder folder;
  const ChildResult r =
      run_child(small(folder, "prove", {"--steps", "3", "-q", "--forms", "crms_norm", "--controls", "2"}));
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out.rfind("Equivalent: after 3 steps on the same batches crms_norm has", 0) == 0);
}

TEST_CASE("prove: what cannot be read is 4, what is not data is 3") {
  const Folder folder;
  CHECK(run_child({"prove", "--data", "/no/such/folder"}).code == 4);
  CHECK(run_child({"prove", "--model", "gpt", "--data", "/no/such/file"}).code == 4);
  CHECK(run_child({"prove", "--model", "gpt", "--data", "/dev/zero"}).code == 4);
  std::ofstream(folder.file("short.txt")) << "abc";
  const ChildResult r = run_child({"prove", "--model", "gpt", "--data", folder.file("short.txt")});
  CHECK(r.code == 3);
  CHECK(r.err == "isonorm prove: " + folder.file("short.txt") +
                     ": a context of 64 needs a text of 64 characters and one more, this has 3 to train on\n");
  const ChildResult held =  // the last 80 of 800 characters are held out
      run_child({"prove", "--model", "gpt", "--data", folder.file("text.txt"), "--context", "720"});
  CHECK(held.code == 3);
  CHECK(contains(held.err, "this has 720 to train on"));
  const ChildResult full = run_child(small(folder, "prove", {"--steps", "2", "--json", "/dev/full"}));
  CHECK(full.code == 4);
  CHECK(contains(full.out, "Equivalent"));  // the result itself is not lost
}

TEST_CASE("train: a file that fills up, a loss that is not finite, Ctrl-C") {
  const Folder folder;
  const ChildResult full = run_child(small(folder, "train", {"--steps", "2", "-q", "--log", "/dev/full"}));
  CHECK(full.code == 4);
  CHECK(full.err == "isonorm train: /dev/full: writing failed: No space left on device\n");
  const ChildResult chaos = run_child(small(folder, "train", {"--steps", "9", "-q", "--lr", "1e300"}));
  CHECK(chaos.code == 6);
  CHECK(std::count(chaos.err.begin(), chaos.err.end(), '\n') == 1);
  const ChildResult stopped = run_child(small(folder, "train", {"--steps", "1000000", "--json", folder.file("t.json")}),
                                        {.interrupt_after = "step 1/"});
  CHECK(stopped.code == 130);
  CHECK(stopped.out.empty());
  CHECK(contains(stopped.err, "isonorm train: interrupted after step "));
  CHECK_FALSE(std::filesystem::exists(folder.file("t.json")));
}

TEST_CASE("prove: on a terminal one line is rewritten; NO_COLOR takes the colours away") {
  const Folder folder;
  const std::vector<std::string> arguments = small(folder, "prove", {"--steps", "5"});
  const ChildResult color = run_child(arguments, {.environment = {"TERM=xterm", "NO_COLOR="}, .terminal = true});
  CHECK(color.code == 0);
  CHECK(contains(color.out, "\rtraining 1/5"));
  CHECK(contains(color.out, "\x1b[32m"));
  const ChildResult plain = run_child(arguments, {.environment = {"TERM=xterm", "NO_COLOR=1"}, .terminal = true});
  CHECK(contains(plain.out, "\rtraining 1/5"));
  CHECK_FALSE(contains(plain.out, "\x1b[32m"));
}

TEST_CASE("prove: the table is as wide as the terminal, else as COLUMNS says, else as it is") {
  const Folder folder;
  const std::vector<std::string> arguments = small(folder, "prove", {"--steps", "5"});
  const auto longest = [](const std::string& out) {
    size_t most = 0;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!contains(line, "\x1b[K")) most = std::max(most, line.size());  // the line that is rewritten
    }
    return most;
  };
  const std::vector<std::string> plain = {"TERM=xterm", "NO_COLOR=1"}, given = {"COLUMNS=80"};
  CHECK(longest(run_child(arguments, {.environment = plain, .terminal = true, .columns = 80}).out) == 80);
  CHECK(longest(run_child(arguments, {.environment = plain, .terminal = true, .columns = 100}).out) == 100);
  CHECK(longest(run_child(arguments, {.environment = given}).out) == 80);
  for (const std::vector<std::string>& none : {std::vector<std::string>{}, {"COLUMNS=0"}, {"COLUMNS=wide"}})
    CHECK(longest(run_child(arguments, {.environment = none}).out) > 140);
}

TEST_CASE("prove: Ctrl-C ends with 130 and concludes nothing") {
  const Folder folder;
  const ChildResult r = run_child(small(folder, "prove", {"--steps", "100000", "--json", folder.file("p.json")}),
                                  {.interrupt_after = "training 1/"});
  CHECK(r.code == 130);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "isonorm prove: interrupted (training, step "));
  CHECK_FALSE(std::filesystem::exists(folder.file("p.json")));
}

TEST_CASE("train: interrupted and resumed it ends with the same checkpoint, bit for bit") {
  const Folder folder;
  const auto with = [&](const std::string& file, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--steps", "600", "--checkpoint", folder.file(file)});
    return small(folder, "train", more);
  };
  const ChildResult whole = run_child(with("whole"));
  CHECK(whole.code == 0);
  CHECK(contains(whole.out, "rms_norm, "));
  CHECK(contains(whole.out, "held-out loss "));
  const ChildResult part = run_child(with("part"), {.interrupt_after = "step 60/"});
  CHECK(part.code == 130);
  CHECK(contains(part.err, "interrupted after step "));
  CHECK(read(folder.file("part")) != read(folder.file("whole")));
  const ChildResult rest = run_child(with("part"));
  CHECK(rest.code == 0);
  CHECK(contains(rest.err, "going on after step "));
  CHECK(read(folder.file("part")) == read(folder.file("whole")));

  const ChildResult other = run_child(with("whole", {"--lr", "0.5"}));
  CHECK(other.code == 3);
  CHECK(contains(other.err, "--lr"));
  std::ofstream(folder.file("text.txt"), std::ios::app) << "abc";
  const ChildResult elsewhere = run_child(with("whole"));
  CHECK(elsewhere.code == 3);
  CHECK(contains(elsewhere.err, "--data"));
}

TEST_CASE("train: a damaged checkpoint is passed over for the one before; without one it is an error") {
  const Folder folder;
  const std::vector<std::string> arguments =
      small(folder, "train", {"--steps", "30", "--save-every", "10", "--checkpoint", folder.file("c")});
  REQUIRE(run_child(arguments).code == 0);
  const std::string whole = read(folder.file("c"));
  std::ofstream(folder.file("c"), std::ios::in | std::ios::out) << "XXXXXXXXXXXX";
  const ChildResult again = run_child(arguments);
  CHECK(again.code == 0);
  CHECK(contains(again.err, "/c is damaged: taking the one before it"));
  CHECK(contains(again.err, "c.previous: going on after step 20"));
  CHECK(read(folder.file("c")) == whole);

  // The one before must not have been overwritten by the damaged one.
  std::ofstream(folder.file("c"), std::ios::in | std::ios::out) << "XXXXXXXXXXXX";
  CHECK(run_child(arguments).code == 0);
  std::ofstream(folder.file("c"), std::ios::in | std::ios::out) << "XXXXXXXXXXXX";
  std::filesystem::remove(folder.file("c.previous"));
  const ChildResult none = run_child(arguments);
  CHECK(none.code == 3);
  CHECK(std::count(none.err.begin(), none.err.end(), '\n') == 1);
  // It is what is wrong, whatever the data of a model that it does not name would be.
  const ChildResult alone = run_child({"train", "--checkpoint", folder.file("c"), "--data", folder.file("none")});
  CHECK(alone.code == 3);
  CHECK(contains(alone.err, "/c: safetensors: "));
}

TEST_CASE("train: where the checkpoint is gone and the one before is there, nothing is overwritten") {
  const Folder folder;
  const std::vector<std::string> arguments =
      small(folder, "train", {"--steps", "2", "--save-every", "1", "--checkpoint", folder.file("c")});
  REQUIRE(run_child(arguments).code == 0);
  std::filesystem::remove(folder.file("c"));
  const std::string before = read(folder.file("c.previous"));
  const ChildResult r = run_child(arguments);
  CHECK(r.code == 3);
  CHECK(r.err == "isonorm train: " + folder.file("c") + ": it is gone, but " + folder.file("c.previous") +
                     " is there; rename that to go on from it, or remove it to begin anew\n");
  CHECK(read(folder.file("c.previous")) == before);
  CHECK_FALSE(std::filesystem::exists(folder.file("c")));
}

TEST_CASE("train: a damaged checkpoint's options are not taken, those of the one before are") {
  const Folder folder;
  REQUIRE(run_child(small(folder, "train",
                          {"--steps", "2", "--save-every", "1", "--lr", "0.5", "--checkpoint", folder.file("c")}))
              .code == 0);
  std::string damaged = read(folder.file("c"));  // its header still reads
  const size_t at = damaged.find("\"value.lr\":\"0.5\"");
  REQUIRE(at != std::string::npos);
  damaged.replace(at, 16, "\"value.lr\":\"0.7\"");
  std::ofstream(folder.file("c"), std::ios::binary) << damaged;
  const ChildResult r =
      run_child({"train", "--data", folder.file("text.txt"), "--threads", "1", "--checkpoint", folder.file("c")});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(load_checkpoint(folder.file("c")).values.at("lr") == "0.5");
}

TEST_CASE("train: a checkpoint whose parts contradict each other is refused") {
  const Folder folder;
  const std::vector<std::string> arguments = small(folder, "train", {"--steps", "2", "--checkpoint", folder.file("c")});
  REQUIRE(run_child(arguments).code == 0);
  Checkpoint earlier = load_checkpoint(folder.file("c"));
  earlier.values["step"] = "1";
  save_checkpoint(folder.file("c"), earlier);
  const ChildResult r = run_child(arguments);
  CHECK(r.code == 3);
  CHECK(r.err == "isonorm train: " + folder.file("c") + ": it is after step 1, its optimizer after 2\n");
}

TEST_CASE("train: JSON, report and log; what is tested is the last tenth of the text") {
  const Folder folder;
  const std::vector<std::string> arguments = small(
      folder, "train",
      {"--steps", "25", "--form", "crms_norm", "--evaluate-every", "10", "--json", folder.file("t.json"), "--report",
       folder.file("t.html"), "--log", folder.file("t.jsonl"), "--checkpoint", folder.file("c"), "-q"});
  const ChildResult r = run_child(arguments);
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  const json j = json::parse(read(folder.file("t.json")));
  CHECK(j["values"]["form"] == "crms_norm");
  CHECK(j["curves"]["loss"]["training loss"].size() == 25);
  const json& tests = j["tables"]["Test"];
  REQUIRE(tests.size() == 3);
  CHECK(tests[2]["after step"] == 25);
  CHECK(tests[2]["of"] == 72);
  CHECK(j["values"]["test accuracy"] == tests[2]["accuracy"]);
  CHECK(tests[2]["loss"] < tests[0]["loss"]);
  CHECK(j["environment"]["data, SHA-256"].get<std::string>().size() == 64);
  CHECK(r.out == j["sentence"].get<std::string>() + "\n");
  CHECK(contains(read(folder.file("t.html")), "role=\"img\""));
  const std::string log = read(folder.file("t.jsonl"));
  CHECK(std::count(log.begin(), log.end(), '\n') == 1 + 25 + 3 + 1);
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) CHECK(json::parse(line).is_object());

  // Gone on with, a log is added to.
  CHECK(run_child(arguments).code == 0);
  CHECK(read(folder.file("t.jsonl")).rfind(log, 0) == 0);
  CHECK(contains(read(folder.file("t.html")), "after step 25: what was before is that of the log"));
  CHECK(json::parse(read(folder.file("t.json")))["values"]["first step"] == 26);
}

TEST_CASE("train: activations in bf16 change gradients, not the first loss; a checkpoint knows of them") {
  const Folder folder;
  const auto train = [&](const std::string& activations, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train",
                                          "--model",
                                          "gpt",
                                          "--data",
                                          folder.file("text.txt"),
                                          "--width",
                                          "32",
                                          "--depth",
                                          "1",
                                          "--heads",
                                          "2",
                                          "--context",
                                          "16",
                                          "--batch",
                                          "8",
                                          "--steps",
                                          "10",
                                          "--warmup",
                                          "0",
                                          "--checkpoint",
                                          folder.file(activations),
                                          "--json",
                                          folder.file(activations + ".json")};
    if (activations != "default") arguments.insert(arguments.end(), {"--activations", activations});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_child(arguments);
  };
  for (const char* activations : {"default", "full", "bf16"}) CHECK(train(activations, {}).code == 0);
  const json plain = json::parse(read(folder.file("default.json"))), f32 = json::parse(read(folder.file("full.json"))),
             bf16 = json::parse(read(folder.file("bf16.json")));
  const auto losses = [](const json& j) { return j["curves"]["loss"]["training loss"]; };
  CHECK(losses(plain) == losses(f32));
  CHECK(losses(bf16)[0] == losses(f32)[0]);
  CHECK(losses(bf16)[9] != losses(f32)[9]);
  CHECK_FALSE(contains(plain["command"], "--activations"));
  CHECK(contains(bf16["command"], "--activations bf16"));

  const ChildResult f64 = train("bf16", {"--dtype", "f64"});
  CHECK(f64.code == 2);
  CHECK(contains(f64.err, "--activations bf16 does not go with --dtype f64"));
  for (const std::string option : {"--captured", "--any-order"}) {  // of devices alone
    const ChildResult here = train("full", {option});
    CHECK(here.code == 2);
    CHECK(contains(here.err, option + " needs --device cuda"));
  }
  std::filesystem::rename(folder.file("bf16"), folder.file("full"));
  const ChildResult other = train("full", {});
  CHECK(other.code == 3);
  CHECK(contains(other.err, "was trained with --activations bf16, asked for is full"));
}

TEST_CASE("ISONORM_PROFILE prints tables, and writes a trace where it names a file") {
  const Folder folder;
  const std::vector<std::string> train = small(folder, "train", {"--steps", "2"});
  const ChildResult plain = run_child(train), tables = run_child(train, {.environment = {"ISONORM_PROFILE=1"}}),
                    trace = run_child(train, {.environment = {"ISONORM_PROFILE=" + folder.file("trace.json")}});
  CHECK_FALSE(contains(plain.err, "between kernels"));
  CHECK(tables.code == 0);
  CHECK(contains(tables.err, "blocks.*.attn.qkv"));
  CHECK(contains(trace.err, "between kernels"));
  const json events = json::parse(read(folder.file("trace.json"))).at("traceEvents");
  CHECK(events.size() > 100);
  for (const json& e : events)
    if (e.at("ph") != "X" || e.at("dur").get<double>() < 0 || !e.at("args").contains("bytes")) FAIL(e.dump());
}
