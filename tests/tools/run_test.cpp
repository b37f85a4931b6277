// prove and train run as a person runs them, on a small language model: exit codes, files, progress, Ctrl-C, resuming.
#include "tests/tools/small_run.h"

TEST_CASE("prove and train take the features of the Transformer from the command line") {
  const Folder f;
  const std::string features =
      " +small --steps 8 --activation swiglu --positions rotary --tied --mlp-width 11 --no-bias --head-width 6 --json "
      "@p";
  f.succeeds("prove" + features);
  const auto p = f.json("p");
  CHECK(contains(p["command"],
                 " --tied --width 8 --depth 1 --heads 2 --head-width 6 --mlp-width 11 --activation swiglu --positions "
                 "rotary --no-bias --"));
  CHECK(p["options"]["bias"] == false);
  // token, qkv, proj, gate, fc1, fc2: no positions, no biases, no head of its own
  const int64_t table = p["runs"][0]["parameters"].get<int64_t>() - 8 * (3 * 12 + 12 + 3 * 11);
  CHECK(table == 8 * 7);  // the bytes of the text
  f.succeeds("train" + features);
}

TEST_CASE("prove: equivalent forms give 0, the table, JSON, report and log") {
  const Folder f;
  const ChildResult r = f.succeeds("prove +small --steps 30 --json @p.json --report @p.html --log @p.jsonl");
  for (const char* part :
       {"rms_norm", "crms_norm", "crms_isometric", "layer_norm + 1 ulp (4)", "rms_norm projected_once",
        "crms_norm compressed_plain", "expected", "observed", "\nEquivalent. After 30 steps"})
    CHECK(contains(r.out, part));
  CHECK(contains(r.err, "training 30/30  loss "));
  CHECK_FALSE(contains(r.out + r.err, "\x1b"));
  CHECK_FALSE(contains(r.err, "\r"));
  const auto j = f.json("p.json");
  CHECK(j["verdict"] == "equivalent");
  const auto& runs = j["runs"];
  REQUIRE(runs.size() == 1 + 4 + 5);
  CHECK(runs[5]["name"] == "rms_norm");
  CHECK(runs[5]["losses"].size() == 30);
  CHECK(runs[8]["name"] == "rms_norm projected_once");
  CHECK(runs[8]["kind"] == "negative");
  CHECK(runs[8]["deviations"]["weights"].size() == 20);
  CHECK(j["tested_on"] == 72);  // nine windows of eight bytes in the 80 that are held out
  CHECK(runs[5]["accuracy"].is_number());
  CHECK(runs[5]["other_predictions"].is_number_integer());
  CHECK(runs[8]["accuracy"].is_null());
  CHECK(j["environment"]["data_sha256"].get<std::string>().size() == 64);
  CHECK(contains(read(f / "p.html"), "<strong>Equivalent</strong>"));
  CHECK(f.lines("p.jsonl").size() == 1 + 30 + 20 + 1);
  // The sentence alone, of one form.
  const ChildResult quiet = f.succeeds("prove +small --steps 3 -q --forms crms_norm --controls 2");
  CHECK(quiet.err.empty());
  CHECK(
      quiet.out.starts_with("Equivalent. After 3 steps the weights of crms_norm differ from layer_norm's by at most "));
}

TEST_CASE("prove: unreadable data are 4, invalid data 3") {
  const Folder f;
  f.refuses("prove --data /no/such/folder", 4, "/no/such/folder");
  f.refuses("prove --model gpt --data /no/such/file", 4, "/no/such/file");
  f.refuses("prove --model gpt --data /dev/zero", 4, "/dev/zero");
  write_text(f / "short", "abc");
  f.refuses("prove --model gpt --data @short", 3,
            ": a context of 64 needs a text of 64 tokens and one more, this has 3 to train on\n");
  CHECK(contains(f.succeeds("train +small --context 1 --steps 1 -q").out, ", 1 step: "));  // the smallest training
  // The last 80 of 800 bytes are held out.
  f.refuses("prove --model gpt --data @text.txt --context 720", 3, "this has 720 to train on");
  // The result is not lost if one of its two outputs fails.
  CHECK(contains(f.gives(4, "prove +small --steps 2 --json /dev/full").out, "Equivalent"));
  f.refuses("prove +small --steps 2 -q --json @result", 4, "standard output cannot be written", {.close_stdout = true});
  CHECK(contains(read(f / "result"), "Equivalent"));
  f.succeeds("train +small --steps 2 -q --checkpoint @c");
  f.refuses("evaluate @c --data @text.txt --json @loss", 4, "standard output cannot be written",
            {.close_stdout = true});
  CHECK(contains(read(f / "loss"), "\"accuracy\""));
  // More than the 4096 bytes that the buffer of standard output holds.
  const ChildOptions full{.close_stdout = true};
  const std::string table =
      "table --steps 1 --seeds 1 --depth 1 --optimizers sgd,adam,adamw,lion,lamb,lars,rmsprop,adagrad --markdown "
      "--json ";
  CHECK(contains(f.gives(4, table + "@cells", full).err, "isonorm table: standard output cannot be written"));
  CHECK(contains(read(f / "cells"), "rmsprop"));
  f.succeeds("train +small --steps 2 -q --depth 12 --checkpoint @deep");
  f.refuses("convert @deep @converted --to rms_norm", 4, "standard output cannot be written", full);
  f.succeeds("info @converted");
}

TEST_CASE("train: a file that fills up, a loss that is not finite") {
  const Folder f;
  f.refuses("train +small --steps 2 -q --log /dev/full", 4,
            "isonorm train: /dev/full: writing failed: No space left on device\n");
  f.refuses("train +small --steps 9 -q --lr 1e300", 6, "step ");
}

TEST_CASE("Ctrl-C and SIGTERM end with 130, say when, and conclude nothing") {
  const Folder f;
  const struct {
    const char *line, *after, *says;
    int signal = SIGINT;
  } stopped[] = {{"prove +small --steps 100000 --json @json", "training 1/", "interrupted (training, step "},
                 {"prove --certificate --json @json", "certificate 0 %", "interrupted"},
                 {"train +small --steps 1000000 --json @json", "step 1/", "interrupted after step "},
                 {"train +small --steps 1000000 --checkpoint @c", "step 1/", "interrupted after step ", SIGTERM}};
  for (const auto& [line, after, says, signal] : stopped) {
    const ChildResult r = f.gives(130, line, {.interrupt_after = after, .signal = signal});
    CHECK(r.out.empty());
    CHECK(contains(r.err, std::string("isonorm ") + std::string(line, 5) + ": " + says));
    CHECK_FALSE(std::filesystem::exists(f / "json"));
  }
  CHECK(std::filesystem::exists(f / "c"));
  const ChildResult experiment = f.gives(
      130, "experiment controls", {.environment = {"TERM=xterm"}, .terminal = true, .interrupt_after = "trained 1/"});
  CHECK(contains(experiment.out, "isonorm experiment: interrupted\r\n"));
  CHECK_FALSE(contains(experiment.out, "refuted"));
}

TEST_CASE("prove: on a terminal one line is rewritten; NO_COLOR takes the colours away") {
  const Folder f;
  for (const bool color : {true, false}) {
    const std::string out =
        f.succeeds("prove +small --steps 5",
                   {.environment = {"TERM=xterm", color ? "NO_COLOR=" : "NO_COLOR=1"}, .terminal = true})
            .out;
    CHECK(contains(out, "\rtraining 1/5"));
    CHECK(contains(out, "\x1b[32m") == color);
  }
}

TEST_CASE("prove: the table has the terminal's width, else COLUMNS, else its own") {
  const Folder f;
  const auto longest = [&](const ChildOptions& options) {
    size_t most = 0;
    std::istringstream lines(f.succeeds("prove +small --steps 5", options).out);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!contains(line, "\x1b[K")) most = std::max(most, line.size());  // the line that is rewritten
    }
    return most;
  };
  for (const unsigned short columns : {80, 100})
    CHECK(longest({.environment = {"TERM=xterm", "NO_COLOR=1"}, .terminal = true, .columns = columns}) == columns);
  CHECK(longest({.environment = {"COLUMNS=80"}}) == 80);
  for (const Words& none : {Words{}, {"COLUMNS=0"}, {"COLUMNS=wide"}}) CHECK(longest({.environment = none}) > 140);
}

TEST_CASE("train: on a terminal the last training loss stays, and lines break at spaces") {
  const Folder f;
  const std::string train = "train +small --steps 40 --evaluate-every 15 ";
  for (const auto& [more, last] : {std::pair{"", 40}, {"--patience 1 --lr 1e-300", 30}}) {
    const std::string out =
        f.succeeds(train + more, {.environment = {"TERM=xterm"}, .terminal = true, .columns = 60}).out;
    std::istringstream lines(out);
    bool found = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (contains(line, "\x1b[K"))  // what stays of a line that was rewritten
        line = line.substr(line.rfind('\r', line.rfind("\x1b[K")) + 1), line.resize(line.find("\x1b[K"));
      CHECK(line.size() <= 60);
      found = found || line.starts_with(text("step ", last, "/40  loss "));
    }
    INFO(out);
    CHECK(found);
    CHECK(contains(out, text("step ", 15, "/40 held-out loss ")));
  }
}

TEST_CASE("train: interrupted and resumed it ends with the same checkpoint, bit for bit") {
  const Folder f;
  const std::string train = "train +small --steps 600 --checkpoint ";
  const std::string whole = f.succeeds(train + "@whole").out;
  CHECK(contains(whole, "rms_norm, "));
  CHECK(contains(whole, "held-out loss "));
  f.gives(130, train + "@part", {.interrupt_after = "step 60/"});
  CHECK(read(f / "part") != read(f / "whole"));
  CHECK(contains(f.succeeds(train + "@part").err, "going on after step "));
  CHECK(read(f / "part") == read(f / "whole"));
  write_text(f / "text.txt", read(f / "text.txt") + "abc");
  f.refuses(train + "@whole", 3, "--data");
}

TEST_CASE("train: a damaged checkpoint is passed over for the one before; without one it is an error") {
  const Folder f;
  const std::string train = "train +small --steps 30 --save-every 10 --checkpoint @c";
  f.succeeds(train);
  const std::string whole = read(f / "c");
  const auto damage = [&] { std::ofstream(f / "c", std::ios::in | std::ios::out) << "XXXXXXXXXXXX"; };
  damage();
  const std::string again = f.succeeds(train).err;
  CHECK(contains(again, "/c is damaged: taking the one before it"));
  CHECK(contains(again, "c.previous: going on after step 20"));
  CHECK(read(f / "c") == whole);
  // The one before must not have been overwritten by the damaged one.
  damage();
  f.succeeds(train);
  damage();
  std::filesystem::remove(f / "c.previous");
  f.refuses(train, 3, "/c");
  // It is what is wrong, whatever the data of a model that it does not name would be.
  f.refuses("train --checkpoint @c --data @none", 3, "/c: safetensors: ");
}

TEST_CASE("train: if the checkpoint is missing and the previous one exists, nothing is overwritten") {
  const Folder f;
  const std::string train = "train +small --steps 2 --save-every 1 --checkpoint @c";
  f.succeeds(train);
  std::filesystem::remove(f / "c");
  const std::string before = read(f / "c.previous");
  f.refuses(train, 3,
            "isonorm train: " + f / "c" + ": it is gone, but " + f / "c.previous" +
                " is there; rename it to continue from it, or remove it to start over\n");
  CHECK(read(f / "c.previous") == before);
  CHECK_FALSE(std::filesystem::exists(f / "c"));
}

TEST_CASE("train: instead of a damaged checkpoint's options the previous one's are taken") {
  const Folder f;
  f.succeeds("train +small --steps 2 --save-every 1 --lr 0.5 --checkpoint @c");
  std::string damaged = read(f / "c");  // its header still reads
  const size_t at = damaged.find("\"value.lr\":\"0.5\"");
  REQUIRE(at != std::string::npos);
  write_text(f / "c", damaged.replace(at, 16, "\"value.lr\":\"0.7\""));
  f.succeeds("train --data @text.txt --threads 1 --checkpoint @c");
  CHECK(load_checkpoint(f / "c").values.at("lr") == "0.5");
}

TEST_CASE("train: JSON, report and log; the test is on the last tenth of the text") {
  const Folder f;
  const std::string train =
      "train +small --steps 25 --form crms_norm --evaluate-every 10 --json @t.json --report @t.html --log @t.jsonl "
      "--checkpoint @c -q";
  const ChildResult r = f.succeeds(train);
  CHECK(r.err.empty());
  const auto j = f.json("t.json");
  CHECK(j["form"] == "crms_norm");
  CHECK(j["course"]["losses"].size() == 25);
  const auto& tests = j["evaluations"];
  REQUIRE(tests.size() == 3);
  CHECK(tests[2]["step"] == 25);
  CHECK(tests[2]["predictions"] == 72);
  CHECK(j["test"] == tests[2]);
  CHECK(tests[2]["loss"] < tests[0]["loss"]);
  CHECK(j["environment"]["data_sha256"].get<std::string>().size() == 64);
  CHECK(r.out == j["sentence"].get<std::string>() + "\n");
  CHECK(contains(read(f / "t.html"), "role=\"img\""));
  const std::string log = read(f / "t.jsonl");
  CHECK(f.lines("t.jsonl").size() == 1 + 25 + 3 + 1);

  // Gone on with, a log is added to.
  f.succeeds(train);
  CHECK(read(f / "t.jsonl").starts_with(log));
  CHECK(contains(read(f / "t.html"), "after step 25: earlier steps are from the log"));
  CHECK(f.json("t.json")["first_step"] == 26);
}

TEST_CASE("train: activations in bf16 change gradients, not the first loss; a checkpoint knows of them") {
  const Folder f;
  const std::string train =
      "train +small --width 32 --context 16 --batch 8 --steps 10 --warmup 0 --checkpoint @c --json @json ";
  const auto trained = [&](const std::string& more) {
    std::filesystem::remove(f / "c");
    f.succeeds(train + more);
    return f.json("json");
  };
  const auto plain = trained(""), f32 = trained("--activations full"), bf16 = trained("--activations bf16");
  const auto losses = [](const nlohmann::json& j) { return j["course"]["losses"]; };
  CHECK(losses(plain) == losses(f32));
  CHECK(losses(bf16)[0] == losses(f32)[0]);
  CHECK(losses(bf16)[9] != losses(f32)[9]);
  CHECK_FALSE(contains(plain["command"], "--activations"));
  CHECK(contains(bf16["command"], "--activations bf16"));
  f.refuses(train + "--activations full", 3, "was trained with --activations bf16, not full");
  f.refuses(train + "--activations bf16 --dtype f64", 2, "--activations bf16 does not go with --dtype f64");
  for (const std::string option : {"--captured", "--any-order"})  // of devices alone
    f.refuses(train + option, 2, option + " needs --device cuda");
}

TEST_CASE("ISONORM_PROFILE prints tables, and writes a trace if it names a file") {
  const Folder f;
  const std::string train = "train +small --steps 2";
  CHECK_FALSE(contains(f.succeeds(train).err, "between kernels"));
  CHECK(contains(f.succeeds(train, {.environment = {"ISONORM_PROFILE=1"}}).err, "blocks.*.attn.qkv"));
  CHECK(contains(f.succeeds(train, {.environment = {"ISONORM_PROFILE=" + f / "trace"}}).err, "between kernels"));
  const auto events = f.json("trace").at("traceEvents");
  CHECK(events.size() > 100);
  for (const auto& e : events)
    if (e.at("ph") != "X" || e.at("dur").get<double>() < 0 || !e.at("args").contains("bytes")) FAIL(e.dump());
  for (const std::string file : {"/no/such/folder/trace", "/dev/full"})
    CHECK(contains(f.gives(4, train + " -q", {.environment = {"ISONORM_PROFILE=" + file}}).err, file));
}
