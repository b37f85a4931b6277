// Options as a person gives them: the printed command repeats a run, a published size is a model's options.
#include "io/checkpoint.h"
#include "nn/gpt.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;
using nlohmann::json;

namespace {

json result_of(const Folder& f, const std::string& line) {
  const ChildResult r = f.run(line + " -q --json @json");
  INFO(line << "\n" << r.err);
  REQUIRE((r.code == 0 || r.code == 5));  // of so few steps a proof may be undecided
  return f.json("json");
}

// The printed command, of which no word needs quotes here, without the program's name.
std::string command_in(const json& result) { return result["command"].get<std::string>().substr(8); }

Metadata model_of(const std::string& checkpoint) {
  Metadata model;
  for (const auto& [name, value] : load_checkpoint(checkpoint).values)
    if (name.starts_with("model.")) model.emplace(name, value);
  return model;
}

}  // namespace

TEST_CASE("the printed command repeats a run, also where options follow from others") {
  const Folder f;
  for (const std::string verb : {"train", "prove --controls 1"})
    for (const char* more : {"--width 128 --heads 4 --mlp-width 256", "--width 16 --heads 2 --head-width 16",
                             "--width 16 --heads 8 --kv-heads 4", "--optimizer sgd --weight-decay 0.01",
                             "--no-bias --affine=true --seed 18446744073709551615"}) {
      INFO(verb << " " << more);
      const json first = result_of(f, verb + " +small --steps 3 " + more), again = result_of(f, command_in(first));
      CHECK(again["options"] == first["options"]);
      for (const char* curves : {"course", "runs"}) CHECK(again.value(curves, json()) == first.value(curves, json()));
      CHECK(again["command"] == first["command"]);
    }
  CHECK(contains(result_of(f, "prove +small --dtype f32 --steps 200 --controls 1")["command"], "--steps 200"));
  const std::string audit = "audit --model gpt --width 8 --depth 1 --heads 2 --context 8 --tied";
  const std::string printed = command_in(result_of(f, audit));
  CHECK(f.words(printed).size() == f.words(audit).size());
  CHECK(result_of(f, printed)["options"]["tied"] == true);
}

TEST_CASE("train --preset: the checkpoint says all that nn::llama_preset says, but for the vocabulary") {
  const Folder f;
  std::string letters;  // of which a tenth is more than one row
  for (int i = 0; i < 4000; ++i) letters += "abcdefg"[i * i % 7];
  write_text(f / "letters", letters);
  f.succeeds("train --data @letters --batch 1 --threads 1 -q --model gpt --preset 9m --steps 1 --checkpoint @c");
  Metadata published = training::describe(nn::Gpt(nn::llama_preset("9m"))), saved = model_of(f / "c");
  for (Metadata* m : {&published, &saved}) m->erase("model.vocab");
  CHECK(saved == published);
}

TEST_CASE("train --preset: given options have precedence, in any order, and resume works without it") {
  const Folder f;
  const std::string train = "train +small -q --width 8 --mlp-width 12 --qk-norm layer_norm --qkv-bias ";
  f.succeeds(train + "--steps 2 --checkpoint @a --preset 20m --form rms_norm --eps 1e-4 --affine");
  f.succeeds(train + "--steps 2 --checkpoint @b --form rms_norm --affine --eps 1e-4 --preset 20m");
  CHECK(read(f / "a") == read(f / "b"));
  const Metadata model = model_of(f / "a");
  const std::pair<const char*, const char*> said[] = {{"width", "8"},
                                                      {"mlp_width", "12"},
                                                      {"eps", "0.0001"},
                                                      {"form", "rms_norm"},
                                                      {"norm_bias", "false"},
                                                      {"activation", "swiglu"},
                                                      {"bias", "false"},
                                                      {"initialisation", "normal"},
                                                      {"positions", "rotary_halves"},
                                                      {"qk_norm", "layer_norm"},
                                                      {"qkv_bias", "true"}};
  for (const auto& [name, value] : said) {
    INFO(name);
    CHECK(model.at(std::string("model.") + name) == value);
  }
  // Spelled out, the options are those of the preset: the same training, bit for bit.
  const std::string spelled =
      train +
      "--form rms_norm --affine --no-norm-bias --eps 1e-4 --initialisation normal --activation swiglu --no-bias "
      "--positions rotary_halves ";
  f.succeeds(spelled + "--steps 2 --checkpoint @c");
  CHECK(read(f / "c") == read(f / "a"));
  f.succeeds(spelled + "--checkpoint @a --steps 3 --extend");
  // A checkpoint is compared with a published size, too: no step is left.
  f.succeeds(train + "--preset 9m --steps 3 --lr 0.5 --warmup 1 --checkpoint @p");
  f.succeeds(train + "--preset 9m --checkpoint @p");
  CHECK(load_checkpoint(f / "p").values.at("lr") == "0.5");
}

TEST_CASE("whole numbers on the command line are decimal") {
  const Folder f;
  for (const char* line : {"train +small --evaluate-every 0x10", "prove +small --controls 0X1", "table --steps 0x10",
                           "train +small --seed 0x10"})
    f.refuses(line, 2, "\" is not a whole number from ");
  CHECK(contains(f.run("perturb @none @out --ulp 02000").err, "2000"));  // octal it would be 1024, which is allowed
}

TEST_CASE("train --preset and --scaled-gains: no such size, a model without sizes or gains") {
  const Folder f;
  f.refuses("train +small --preset 2b", 2,
            "isonorm train: --preset: llama_preset: no size is called '2b'; there are 9m, 20m, 35m, 40m, 60m, 71m, "
            "100m, 130m, 250m, 350m, 1b, 3b, 7b; see isonorm train --help\n");
  f.refuses("train --preset 9m --model vit", 2, "isonorm train: --preset requires --model gpt");
  f.refuses("train +small --scaled-gains", 2, "isonorm train: transformer: scaled gains need affine norms");
}
