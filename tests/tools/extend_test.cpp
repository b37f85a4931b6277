// train goes on with more steps and other rates, and begins with weights from a file.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/tools/child.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

// A folder with a text, and trainings of a small model on it.
struct Trainings : TempFolder {
  Trainings() {
    std::string text;
    for (int i = 0; i < 600; ++i) text += "abcd efg"[i * i % 7];
    write_text(*this / "text", text);
  }
  ChildResult train(std::vector<std::string> more, const ChildOptions& options = {}) const {
    std::vector<std::string> all = {
        "train",   "--model",   "gpt",       "--data", *this / "text", "--width", "8",    "--depth", "1",
        "--heads", "2",         "--context", "8",      "--batch",      "4",       "--lr", "0.01",    "--warmup",
        "2",       "--threads", "1"};
    if (std::find(more.begin(), more.end(), "--dtype") == more.end()) all.insert(all.end(), {"--dtype", "f64"});
    more.insert(more.begin(), all.begin(), all.end());
    return run_child(more, options);
  }
  std::string read(const std::string& name) const {
    std::stringstream s;
    s << std::ifstream(*this / name, std::ios::binary).rdbuf();
    return s.str();
  }
  // The lines of a log that are steps.
  std::vector<json> steps(const std::string& log) const {
    std::vector<json> found;
    std::ifstream file(*this / log);
    for (std::string line; std::getline(file, line);)
      if (const json j = json::parse(line); j.contains("lr")) found.push_back(j);
    return found;
  }
  double first_loss(std::vector<std::string> more) const {
    std::filesystem::remove(*this / "first");
    more.insert(more.end(), {"--steps", "1", "-q", "--log", *this / "first"});
    const ChildResult r = train(more);
    INFO(r.err);
    CHECK(r.code == 0);
    return steps("first").at(0)["loss"];
  }
};

// As the documentation has it: linear warm-up, then half a cosine down to 0.
double rate(double peak, int warmup, int steps, int t) {
  return t < warmup ? peak * (t + 1) / warmup
                    : peak * (1 + std::cos(std::numbers::pi * (t - warmup) / (steps - warmup))) / 2;
}

}  // namespace

TEST_CASE("train --label-smoothing: another loss, which a checkpoint tells apart") {
  const Trainings t;
  const std::vector<std::string> smoothed = {"--label-smoothing", "0.25"};
  const auto train = [&](const std::vector<std::string>& more, const char* log) {
    std::vector<std::string> a = {"--steps", "3", "-q", "--checkpoint", t / "c", "--log", t / log};
    a.insert(a.end(), more.begin(), more.end());
    return t.train(a);
  };
  REQUIRE(train(smoothed, "smoothed").code == 0);
  const ChildResult refused = train({"--label-smoothing", "0"}, "unused");
  CHECK(refused.code == 3);
  CHECK_THAT(refused.err, Contains("with --label-smoothing 0.25, asked for is 0"));
  std::filesystem::remove(t / "c");
  REQUIRE(train({}, "plain").code == 0);
  CHECK(t.steps("smoothed")[0]["loss"] != t.steps("plain")[0]["loss"]);
  std::filesystem::remove(t / "c");
  CHECK(train({"--label-smoothing", "1"}, "unused").code == 0);
  for (const char* share : {"-0.1", "1.01", "nan"}) CHECK(train({"--label-smoothing", share}, "unused").code == 2);
}

TEST_CASE("train --extend: more steps, at the rates that a training of that length has there") {
  const Trainings t;
  REQUIRE(t.train({"--steps", "30", "-q", "--checkpoint", t / "c"}).code == 0);
  std::filesystem::copy_file(t / "c", t / "c30");
  const ChildResult refused = t.train({"--steps", "600", "--checkpoint", t / "c"});
  CHECK(refused.code == 3);
  CHECK_THAT(refused.err, Contains("c: was trained with --steps 30, asked for is 600; --extend goes on with that\n"));
  CHECK(t.read("c") == t.read("c30"));

  const ChildResult r = t.train({"--steps", "600", "--weight-decay", "0", "--extend", "--checkpoint", t / "c", "--log",
                                 t / "log", "--json", t / "json", "--report", t / "page"});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.err, Contains("c: going on after step 30\n") &&
                        Contains("to step 30 with --steps 30 --weight-decay 0.01; from here on with the rates of a "
                                 "training of 600 steps, the next being 9.95e-03\n"));
  const std::vector<json> steps = t.steps("log");
  REQUIRE(steps.size() == 570);
  for (size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i]["step"] == 31 + i);
    CHECK(steps[i]["lr"].get<double>() == Approx(rate(0.01, 2, 600, 30 + static_cast<int>(i))).epsilon(1e-13));
  }
  const json result = json::parse(t.read("json"));
  CHECK(result["environment"]["earlier"] == "to step 30 with --steps 30 --weight-decay 0.01");
  CHECK_THAT(t.read("page"), Contains("Extended: to step 30 with"));

  // A process that was killed between its two names for the checkpoint left them as one file.
  std::filesystem::remove(t / "c.previous");
  std::filesystem::create_hard_link(t / "c", t / "c.previous");
  CHECK(t.train({"--steps", "600", "--weight-decay", "0", "--checkpoint", t / "c"}).code == 0);

  // Interrupted it goes on with the same command, bit-equal; again without --extend, since nothing differs then.
  const auto part = [&](bool extend, const ChildOptions& options) {
    std::vector<std::string> a = {"--steps", "600", "--weight-decay", "0", "--checkpoint", t / "c30"};
    if (extend) a.push_back("--extend");
    return t.train(a, options).code;
  };
  CHECK(part(true, {.interrupt_after = "step 60/"}) == 130);
  CHECK(t.read("c30") != t.read("c"));
  const int64_t at = integer_at(load_checkpoint(t / "c30").values, "step");
  CHECK((at > 30 && at < 600));
  CHECK(part(false, {}) == 0);
  CHECK(t.read("c30") == t.read("c"));
}

TEST_CASE("train --extend: once more, and what may not change") {
  const Trainings t;
  REQUIRE(t.train({"--steps", "3", "-q", "--checkpoint", t / "c"}).code == 0);
  REQUIRE(t.train({"--steps", "6", "-q", "--extend", "--checkpoint", t / "c"}).code == 0);
  REQUIRE(t.train({"--steps", "9", "-q", "--extend", "--clip", "0.5", "--checkpoint", t / "c"}).code == 0);
  CHECK(load_checkpoint(t / "c").values.at("earlier") == "to step 3 with --steps 3; to step 6 with --clip 1 --steps 6");
  const auto refused = [&](std::vector<std::string> more, int code, const std::string& what) {
    const ChildResult r = t.train(more);
    CHECK(r.code == code);
    CHECK_THAT(r.err, Contains(what));
  };
  refused({"--extend", "--steps", "8", "--clip", "0.5", "--checkpoint", t / "c"}, 3,
          "c: is after step 9, asked for are 8 steps\n");
  refused({"--extend", "--steps", "12", "--seed", "2", "--checkpoint", t / "c"}, 3,
          "c: was trained with --seed 1, asked for is 2\n");
  refused({"--extend", "--checkpoint", t / "none"}, 3, "none: there is no checkpoint to extend\n");
  refused({"--extend"}, 2, "--extend needs --checkpoint");
}

TEST_CASE("train --init: begins with the weights of a checkpoint, a safetensors file or a converted one") {
  const Trainings t;
  REQUIRE(t.train({"--steps", "20", "-q", "--checkpoint", t / "c"}).code == 0);
  const double fresh = t.first_loss({}), trained = t.first_loss({"--init", t / "c"});
  CHECK(std::abs(trained - fresh) > 1e-3);
  save_safetensors(t / "plain", load_checkpoint(t / "c").weights);
  CHECK(t.first_loss({"--init", t / "plain"}) == trained);
  // Weights stored in the coordinates of a form are taken out of them: then every form trains as Pre-LN does.
  for (const char* form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    const ChildResult converted = run_child({"convert", t / "c", t / form, "--to", form, "-q"});
    INFO(converted.err);
    REQUIRE(converted.code == 0);
    for (const char* asked : {"layer_norm", "rms_norm", "crms_norm"})
      CHECK(std::abs(t.first_loss({"--init", t / form, "--form", asked}) - trained) < 1e-13);
  }
  CHECK(std::abs(t.first_loss({"--init", t / "crms_norm", "--dtype", "f32"}) - trained) < 1e-6);
}

TEST_CASE("train --init: a converted file whose gains stay behind sums and branches") {
  const Trainings t;
  for (const char* connection : {"post_ln", "sandwich"}) {
    const std::string name = t / connection, converted = name + ".crms";
    const auto loss = [&](const std::string& init) {
      return t.first_loss({"--connection", connection, "--affine", "--form", "crms_norm", "--init", init});
    };
    REQUIRE(t.train({"--connection", connection, "--affine", "--steps", "20", "-q", "--checkpoint", name}).code == 0);
    REQUIRE(run_child({"convert", name, converted, "--to", "crms_norm", "-q"}).code == 0);
    CHECK(std::abs(loss(converted) - loss(name)) < 1e-13);
  }
}

TEST_CASE("train --init: it is another training than going on, and one that is gone on with") {
  const Trainings t;
  REQUIRE(t.train({"--steps", "20", "-q", "--checkpoint", t / "c"}).code == 0);
  const ChildResult whole =
      t.train({"--init", t / "c", "--steps", "400", "--checkpoint", t / "whole", "--log", t / "l"});
  CHECK(whole.code == 0);
  CHECK_THAT(whole.err, Contains("c: beginning with its weights\n"));
  CHECK(t.steps("l").at(0)["step"] == 1);
  CHECK(t.steps("l").at(0)["lr"] == 0.005);
  const std::vector<std::string> part = {"--init", t / "c", "--steps", "400", "--checkpoint", t / "part"};
  CHECK(t.train(part, {.interrupt_after = "step 60/"}).code == 130);
  CHECK(t.train(part).code == 0);
  CHECK(t.read("part") == t.read("whole"));
  // The weights need not be there any more, but others are others.
  CHECK(t.train({"--steps", "400", "-q", "--checkpoint", t / "part"}).code == 0);
  const ChildResult other = t.train({"--init", t / "whole", "--steps", "400", "--checkpoint", t / "part"});
  CHECK(other.code == 3);
  CHECK_THAT(other.err, Contains("part: did not begin with the weights of --init"));
}

TEST_CASE("train --init: another model is refused, and named") {
  const Trainings t;
  REQUIRE(t.train({"--steps", "1", "-q", "--checkpoint", t / "c"}).code == 0);
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& what) {
    const ChildResult r = t.train(more);
    CHECK(r.code == code);
    CHECK(r.err == "isonorm train: " + (t / "c") + what + "\n");
  };
  refused({"--init", t / "c", "--eps", "1e-6"}, 3, ": its model.eps is 1e-05, asked for is 1e-06");
  refused({"--init", t / "c", "--mlp", "16"}, 3, ": its model.mlp_width is 32, asked for is 16");
  refused({"--init", t / "c", "--form", "none"}, 3,
          ": its stream is rms_norm, asked for is none, which is another function");
  std::filesystem::remove(t / "c");
  refused({"--init", t / "c"}, 4, ": cannot be opened");
}

TEST_CASE("train --evaluate-every: what was measured is a line in the terminal") {
  const Trainings t;
  const ChildResult r = t.train({"--steps", "25", "--evaluate-every", "10", "--json", t / "json"});
  CHECK(r.code == 0);
  const json evaluations = json::parse(t.read("json"))["tables"]["Test"];
  REQUIRE(evaluations.size() == 3);
  for (size_t i = 0; i < 2; ++i) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "step %d0/25  held-out loss %.4f, perplexity %.3f, test accuracy %.2f %% (%d of 56 characters)\n",
                  static_cast<int>(i + 1), evaluations[i]["loss"].get<double>(),
                  std::exp(evaluations[i]["loss"].get<double>()), 100 * evaluations[i]["accuracy"].get<double>(),
                  evaluations[i]["right"].get<int>());
    CHECK_THAT(r.err, Contains(line));
  }
  CHECK_THAT(r.err, !Contains("step 25/25  held-out"));  // that is the sentence on standard output
  const ChildResult terminal =
      t.train({"--steps", "25", "--evaluate-every", "10"}, {.environment = {"TERM=xterm"}, .terminal = true});
  CHECK_THAT(terminal.out, Contains("\r\x1b[Kstep 10/25  held-out loss "));
}
