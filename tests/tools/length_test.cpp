// The length of a training: warm-up, epochs, and the line before the first step that states them.
#include <numbers>

#include "tests/support/small_images.h"
#include "tests/tools/small_run.h"

namespace {

const std::string kTrain = "train +small --dtype f64 --lr 0.01 ";

// The rates that a log has, by step from 1.
std::map<int, double> rates_of(const Folder& f, const std::string& log) {
  std::map<int, double> rates;
  for (const nlohmann::json& line : f.lines(log))
    if (line.contains("lr")) rates[line["step"]] = line["lr"];
  return rates;
}

// docs/training.md: p (t + 1) / w before t = w, then p (1 + cos(pi (t - w) / (n - w))) / 2 at step t = 0, 1, ...
double rate(double peak, int warmup, int steps, int t) {
  return t < warmup ? peak * (t + 1) / warmup
                    : peak * (1 + std::cos(std::numbers::pi * (t - warmup) / (steps - warmup))) / 2;
}

void check_rates(const std::map<int, double>& rates, int first, int warmup, int steps) {
  REQUIRE(std::ssize(rates) == steps - first + 1);
  for (const auto& [step, lr] : rates) CHECK(lr == Approx(rate(0.01, warmup, steps, step - 1)).epsilon(1e-13));
}

}  // namespace

TEST_CASE("train --warmup: a warm-up longer than the training is refused, wherever it was given") {
  const Folder f;
  const std::string says = "--warmup: 1000 steps are more than the 10 of the training; see isonorm train --help\n";
  f.refuses(kTrain + "--warmup 1000 --steps 10 --checkpoint @c", 2, says);
  write_text(f / "config.toml", "warmup = 1000\n");
  f.refuses(kTrain + "--config @config.toml --steps 10 --checkpoint @c", 2, says);
  f.refuses(kTrain + "--warmup 35 --epochs 1.5 --checkpoint @c", 2, "--warmup: 35 steps are more than the 34 of the ");
  CHECK_FALSE(std::filesystem::exists(f / "c"));
  f.succeeds(kTrain + "--warmup 10 --steps 10 -q --log @log");
  check_rates(rates_of(f, "log"), 1, 10, 10);
  f.refuses("prove +small --warmup 1000 --steps 10", 2, "--warmup: 1000 steps are more than the 10 of the training");
  f.succeeds("prove +small --steps 10 --forms rms_norm -q --json @proof");
  CHECK(f.json("proof")["options"]["warmup"] == 10);
}

TEST_CASE("train: the default warm-up is 20 steps, or all if there are fewer; it is said, saved and extended") {
  const Folder f;
  const std::string said = f.succeeds(kTrain + "--steps 10 --log @log --checkpoint @c --json @json").err;
  CHECK(
      contains(said, "10 steps of 32 tokens: 320 tokens, 0.44 times the 720 to train on; warm-up: 10 steps\nstep 1/"));
  check_rates(rates_of(f, "log"), 1, 10, 10);
  CHECK(load_checkpoint(f / "c").values.at("warmup") == "10");
  CHECK(f.json("json")["options"]["warmup"] == 10);
  CHECK(f.lines("log")[0]["manifest"]["options"]["warmup"] == 10);
  f.succeeds(kTrain + "--steps 30 -q --extend --log @more --checkpoint @c");
  check_rates(rates_of(f, "more"), 11, 10, 30);
  CHECK(load_checkpoint(f / "c").values.at("earlier") == "to step 10 with --steps 10");
  CHECK(contains(read(f / "c.toml"), "warmup = 10\n"));
  f.succeeds("train --config @c.toml -q --log @again --checkpoint @again.ckpt");
  check_rates(rates_of(f, "again"), 1, 10, 30);

  f.succeeds(kTrain + "--steps 30 -q --log @long --checkpoint @long.ckpt");
  check_rates(rates_of(f, "long"), 1, 20, 30);
  CHECK_FALSE(contains(read(f / "long.ckpt.toml"), "warmup"));
  f.refuses(kTrain + "--steps 31 --warmup 40 --extend --checkpoint @long.ckpt", 2, "--warmup: 40 steps are more");
}

TEST_CASE("train --warmup: a number below 1 is a share of the steps, saved as steps") {
  const Folder f;
  f.succeeds(kTrain + "--steps 40 --warmup 0.1 -q --log @log --checkpoint @c");
  check_rates(rates_of(f, "log"), 1, 4, 40);
  CHECK(load_checkpoint(f / "c").values.at("warmup") == "4");
  CHECK(f.lines("log")[0]["manifest"]["options"]["warmup"] == 4);
  CHECK(contains(read(f / "c.toml"), "warmup = 4\n"));
  f.succeeds(kTrain + "--steps 40 --warmup 0.1 -q --checkpoint @c");
  f.succeeds(kTrain + "--steps 60 -q --extend --log @more --checkpoint @c");  // keeps the 4 steps
  check_rates(rates_of(f, "more"), 41, 4, 60);
  write_text(f / "config.toml", "warmup = 0.25\n");
  CHECK(contains(f.succeeds(kTrain + "--config @config.toml --epochs 1").err,
                 "23 steps of 32 tokens: 736 tokens, 1.02 times the 720 to train on; warm-up: 6 steps\n"));
  f.succeeds("prove +small --steps 8 --warmup 0.5 --forms rms_norm -q --json @proof");
  CHECK(f.json("proof")["options"]["warmup"] == 4);
  for (const char* word : {"1.0", "1.5", "-0.1", "-1", "nan", "0.1x"})
    f.refuses(
        kTrain + "--warmup " + word, 2,
        text("--warmup: \"", word, "\" is not a whole number of steps, or a share of --steps below 1, such as 0.1"));
}

TEST_CASE("train: a checkpoint of an older version, whose warm-up of 20 steps was cut to 10, resumes unchanged") {
  const Folder f;
  f.succeeds(kTrain + "--steps 10 --save-every 5 -q --checkpoint @c");
  Checkpoint older = load_checkpoint(f / "c.previous");
  REQUIRE(integer_at(older.values, "step") == 5);
  older.values["warmup"] = "20";
  save_checkpoint(f / "older", older);
  f.succeeds(kTrain + "--steps 10 --warmup 20 -q --log @log --checkpoint @older");
  check_rates(rates_of(f, "log"), 6, 10, 10);
  const Checkpoint now = load_checkpoint(f / "older"), expected = load_checkpoint(f / "c");
  CHECK(now.values.at("warmup") == "20");
  for (const auto& [name, tensor] : expected.weights)
    CHECK(now.weights.at(name).to_vector<double>() == tensor.to_vector<double>());
  f.succeeds("train --data @text.txt --threads 1 --steps 15 --extend -q --log @more --checkpoint @older");
  check_rates(rates_of(f, "more"), 11, 15, 15);
}

TEST_CASE("train --epochs: ceil(N examples / batch) steps, and the line before the first says how many examples") {
  const Folder f;
  write_images(f, 20);
  const std::string train =
      "train --data @images --width 8 --depth 1 --heads 2 --patch 14 --dtype f64 --threads 1 --lr 0.01 ";
  CHECK(contains(f.succeeds(train + "--batch 11 --epochs 10 --log @log").err,
                 "19 steps of 11 images: 209 images, 10.45 times the 20 to train on; warm-up: 19 steps\n"));
  CHECK(contains(f.succeeds(train + "--batch 10 --epochs 1.1").err, "3 steps of 10 images: 30 images, 1.50 times"));
  CHECK(contains(f.succeeds(train + "--batch 2 --epochs 1.1").err, "11 steps of 2 images: 22 images, 1.10 times"));
  f.succeeds(train + "--batch 11 --steps 19 -q --log @steps");
  const auto losses = [&](const std::string& log) {
    std::vector<double> all;
    for (const nlohmann::json& line : f.lines(log))
      if (line.contains("lr")) all.push_back(line["loss"]);
    return all;
  };
  CHECK(losses("log") == losses("steps"));  // the same batches
  f.refuses(train + "--batch 21 --steps 1", 3, "there are 20 images to train on, --batch 21 is more\n");

  std::filesystem::create_directory(f / "pairs");
  for (const char* file : {"pairs/source.txt", "pairs/target.txt"})
    write_text(f / file, "ab\ncd\nef\ngh\nij\nkl\nmn\nop\nqr\nst\n");
  const std::string pairs = "train --data @pairs --width 8 --depth 1 --heads 2 --context 8 --threads 1 ";
  CHECK(contains(f.succeeds(pairs + "--batch 64 --epochs 10").err,
                 "2 steps of 64 pairs: 128 pairs, 14.22 times the 9 to train on; warm-up: 2 steps\n"));
}

TEST_CASE("train: without a file for the model a line before the first step says so") {
  const Folder f;
  const std::string line = "the trained model will not be kept; --checkpoint FILE keeps it\nstep 1/1 ";
  CHECK(contains(f.succeeds(kTrain + "--steps 1").err, line));
  for (const std::string keeps : {"--checkpoint @c", "--ema 0.5 --ema-file @e", "--evaluate-every 1 --best @b"})
    CHECK_FALSE(contains(f.succeeds(kTrain + "--steps 1 " + keeps).err, "will not be kept"));
}
