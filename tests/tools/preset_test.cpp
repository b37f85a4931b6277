// train --preset and --scaled-gains: the model is the published one, other options change it, its checkpoint needs no preset.
#include <algorithm>

#include "io/checkpoint.h"
#include "nn/gpt.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;

namespace {

ChildResult train(const Folder& f, std::vector<std::string> more) {
  std::vector<std::string> all = {"train", "--data", f.file("text.txt"), "--batch", "1", "--threads",
                                  "1",     "-q",     "--seed",           "3"};
  all.insert(all.end(), more.begin(), more.end());
  return run_child(all);
}

Metadata model_of(const std::string& checkpoint) {
  Metadata model;
  for (const auto& [name, value] : load_checkpoint(checkpoint).values)
    if (name.starts_with("model.")) model.emplace(name, value);
  return model;
}

}  // namespace

TEST_CASE("train --preset: the checkpoint says all that nn::llama_preset says, but for the vocabulary") {
  const Folder f;
  {
    std::ofstream text(f.file("text.txt"));  // of which a tenth is more than one row
    for (int i = 0; i < 4000; ++i) text << "abcdefg"[i * i % 7];
  }
  const ChildResult r = train(f, {"--model", "gpt", "--preset", "9m", "--steps", "1", "--checkpoint", f.file("c")});
  INFO(r.err);
  REQUIRE(r.code == 0);
  Metadata published = training::describe(nn::Gpt(nn::llama_preset("9m"))), saved = model_of(f.file("c"));
  for (Metadata* m : {&published, &saved}) m->erase("model.vocab");
  CHECK(saved == published);
}

TEST_CASE("train --preset: what is given beside it is taken instead, in any order, and resumed without it") {
  const Folder f;
  const std::vector<std::string> sizes = {"--width", "8",           "--depth", "1",         "--heads",
                                          "2",       "--mlp-width", "12",      "--context", "8"};
  const auto with = [&](std::vector<std::string> first, std::vector<std::string> last, const char* checkpoint) {
    first.insert(first.end(), sizes.begin(), sizes.end());
    first.insert(first.end(), last.begin(), last.end());
    if (std::ranges::count(first, "--steps") == 0) first.insert(first.end(), {"--steps", "2"});
    if (*checkpoint) first.insert(first.end(), {"--checkpoint", f.file(checkpoint)});
    return train(f, first);
  };
  REQUIRE(with({"--preset", "20m"}, {"--form", "rms_norm", "--eps", "1e-4", "--affine"}, "a").code == 0);
  REQUIRE(with({"--form", "rms_norm", "--affine", "--eps", "1e-4"}, {"--preset", "20m"}, "b").code == 0);
  CHECK(read(f.file("a")) == read(f.file("b")));
  const Metadata model = model_of(f.file("a"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"width", "8"},
                                                                                    {"mlp_width", "12"},
                                                                                    {"eps", "0.0001"},
                                                                                    {"form", "rms_norm"},
                                                                                    {"norm_bias", "false"},
                                                                                    {"activation", "swiglu"},
                                                                                    {"positions", "rotary_halves"},
                                                                                    {"bias", "false"},
                                                                                    {"initialisation", "normal"}}) {
    INFO(name);
    CHECK(model.at("model." + name) == value);
  }
  // Spelled out, the options are those of the preset: the same training, bit for bit.
  const std::vector<std::string> spelled = {
      "--model",          "gpt",    "--form",       "rms_norm", "--affine",  "--no-norm-bias", "--eps",        "1e-4",
      "--initialisation", "normal", "--activation", "swiglu",   "--no-bias", "--positions",    "rotary_halves"};
  REQUIRE(with(spelled, {}, "c").code == 0);
  CHECK(read(f.file("c")) == read(f.file("a")));
  std::vector<std::string> on = spelled;
  on.insert(on.end(), {"--steps", "3", "--extend"});
  CHECK(with(on, {}, "a").code == 0);
}

TEST_CASE("train --preset: a name that is no size, and a model without sizes, are refused in one line") {
  const Folder f;
  const ChildResult unknown = train(f, {"--preset", "2b"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err ==
        "isonorm train: --preset: llama_preset: no size is called '2b'; there are 9m, 20m, 35m, 40m, 60m, 71m, 100m, "
        "130m, 250m, 350m, 1b, 3b, 7b; see isonorm train --help\n");
  const ChildResult images = run_child({"train", "--preset", "9m", "--model", "vit"});
  CHECK(images.code == 2);
  CHECK(images.err.starts_with("isonorm train: --preset belongs to --model gpt"));
}

TEST_CASE("train --scaled-gains: kept by the checkpoint, and refused without gains") {
  const Folder f;
  const std::string c = f.file("c");
  const auto small_gains = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "2", "-q", "--checkpoint", c});
    return run_child(small(f, "train", more));
  };
  REQUIRE(small_gains({"--affine", "--no-norm-bias", "--scaled-gains"}).code == 0);
  CHECK(model_of(c).at("model.scaled_gains") == "true");
  CHECK(small_gains({"--affine", "--no-norm-bias", "--scaled-gains"}).code == 0);
  const ChildResult other = small_gains({"--affine", "--no-norm-bias", "--scaled-gains=false"});
  CHECK(other.code == 3);
  CHECK(other.err == "isonorm train: " + c + ": was trained with --scaled-gains true, asked for is false\n");
  const ChildResult none = run_child(small(f, "train", {"--scaled-gains"}));
  CHECK(none.code == 2);
  CHECK(none.err.starts_with("isonorm train: transformer: gains are to begin at 1/sqrt(l), and the norms have none"));
}
