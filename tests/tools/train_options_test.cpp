// Options of train: what a checkpoint knows need not be said again; dropout, parts of a batch, averaged weights.
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;

namespace {

ChildResult train(const Folder& f, std::vector<std::string> more) {
  more.insert(more.end(), {"--dtype", "f64", "-q"});
  return run_child(small(f, "train", more));
}

void check_trains(const Folder& f, const std::vector<std::string>& more) {
  const ChildResult r = train(f, more);
  INFO(r.err);
  REQUIRE(r.code == 0);
}

double first_loss(const Folder& f, std::vector<std::string> more) {
  std::filesystem::remove(f.file("log"));
  more.insert(more.end(), {"--steps", "1", "--log", f.file("log")});
  check_trains(f, more);
  std::istringstream lines(read(f.file("log")));
  for (std::string line; std::getline(lines, line);)
    if (const auto j = nlohmann::json::parse(line); j.contains("lr")) return j["loss"];
  return 0;
}

}  // namespace

TEST_CASE("train: a checkpoint knows what it is; what is said beside it has to agree") {
  const Folder f;
  check_trains(
      f, {"--connection", "sandwich",        "--affine",   "--form",       "crms_norm", "--mlp-width",  "24",
          "--lr",         "0.0123456789012", "--schedule", "linear",       "--dropout", "0.25",         "--ema",
          "0.5",          "--steps",         "6",          "--save-every", "2",         "--checkpoint", f.file("c")});
  std::filesystem::copy_file(f.file("c.previous"), f.file("d"));
  REQUIRE(integer_at(load_checkpoint(f.file("d")).values, "step") == 4);
  const std::vector<std::string> alone = {"train", "--data", f.file("text.txt"), "-q", "--threads", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), alone.begin(), alone.end());
    return run_child(more);
  };
  const ChildResult on = with({"--checkpoint", f.file("d"), "--save-every", "2"});
  INFO(on.err);
  CHECK(on.code == 0);
  CHECK(read(f.file("d")) == read(f.file("c")));

  const auto refused = [&](const std::vector<std::string>& more, const std::string& line) {
    std::vector<std::string> all = {"--checkpoint", f.file("c")};
    all.insert(all.end(), more.begin(), more.end());
    const ChildResult r = with(all);
    CHECK(r.code == 3);
    CHECK(r.err == "isonorm train: " + f.file("c") + ": was trained with " + line + "\n");
  };
  const ChildResult vit = run_child({"train", "--model", "vit", "--checkpoint", f.file("c"), "-q"});
  CHECK(vit.code == 3);
  CHECK(vit.err == "isonorm train: " + f.file("c") + ": was trained with --model gpt, asked for is vit\n");
  refused({"--width", "16"}, "--width 8, asked for is 16");
  refused({"--connection", "pre_ln"}, "--connection sandwich, asked for is pre_ln");
  refused({"--dropout", "0"}, "--dropout 0.25, asked for is 0");
  refused({"--lr", "0.0123456789013"},
          "--lr 0.0123456789012, asked for is 0.0123456789013; --extend goes on with that");

  Checkpoint forged = load_checkpoint(f.file("c"));
  forged.values["model.width"] = "wide";
  save_checkpoint(f.file("forged"), forged);
  const ChildResult r = with({"--checkpoint", f.file("forged")});
  CHECK(r.code == 3);
  CHECK(r.err == "isonorm train: " + f.file("forged") +
                     ": model file: entry 'model.width' is 'wide', expected a whole number from 2 to 16777216\n");
}

TEST_CASE("train --dropout, --accumulate and --layer-scale change what a step computes as they say") {
  const Folder f;
  const double plain = first_loss(f, {}), dropped = first_loss(f, {"--dropout", "0.5"});
  CHECK(dropped != plain);
  CHECK(first_loss(f, {"--dropout", "0.5"}) == dropped);
  CHECK(first_loss(f, {"--dropout", "0.5", "--seed", "2"}) != dropped);
  CHECK(first_loss(f, {"--layer-scale", "1"}) == Approx(plain).epsilon(1e-13));
  CHECK(first_loss(f, {"--layer-scale", "0.1"}) != plain);
  CHECK(first_loss(f, {"--accumulate", "4"}) == Approx(plain).epsilon(1e-13));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--accumulate", "3"}, {"--dropout", "1"}, {"--ema", "-1"}, {"--ema-file", "x"}})
    CHECK(train(f, wrong).code == 2);
}

TEST_CASE("train --ema: the average of the weights after each step, in the checkpoint and in a file of its own") {
  const Folder f;
  const auto weights = [&](const std::string& name, const char* lr, const char* steps) {
    check_trains(f, {"--schedule", "constant", "--warmup", "0", "--lr", lr, "--steps", steps, "--ema", "0.5",
                     "--checkpoint", f.file(name), "--ema-file", f.file(name + ".ema")});
    return load_checkpoint(f.file(name)).weights;
  };
  const TensorMap w0 = weights("0", "1e-300", "1"), w1 = weights("1", "0.01", "1"), w2 = weights("2", "0.01", "2");
  const std::unique_ptr<nn::Module> averaged = training::load_model(f.file("2.ema"));
  CHECK_FALSE(averaged->training());
  const TensorMap averages = averaged->state_dict();
  REQUIRE(averages.size() == w2.size());
  double moved = 0;
  for (const auto& [name, tensor] : averages) {
    const auto a0 = w0.at(name).to_vector<double>(), a1 = w1.at(name).to_vector<double>(),
               a2 = w2.at(name).to_vector<double>(), average = tensor.to_vector<double>();
    for (size_t i = 0; i < average.size(); ++i) {
      CHECK(average[i] == Approx(a0[i] / 4 + a1[i] / 4 + a2[i] / 2).epsilon(1e-14).margin(1e-17));
      moved = std::max(moved, std::abs(a2[i] - average[i]));
    }
  }
  CHECK(moved > 1e-3);
}
