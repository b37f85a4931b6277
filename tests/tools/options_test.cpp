// Options as a person gives them: the printed command repeats a run, the last value counts, presets.
#include "nn/gpt.h"
#include "tests/tools/small_run.h"

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

TEST_CASE("train: appended options override those before them, and --config") {
  const Folder f;
  write_text(f / "config.toml", "lr = 0.5\nseed = 7\nclip = 0.5\n");
  f.succeeds(
      "train +small --config @config.toml --lr 0.1 --steps 9 --no-bias=false --model vit -q --checkpoint @none "
      "--json @json --lr 0.2 --lr 0.25 --steps 2 --no-bias --model gpt --checkpoint @c --warmup 99 --warmup 1");
  CHECK_FALSE(std::filesystem::exists(f / "none"));
  const Metadata values = load_checkpoint(f / "c").values;
  for (const auto& [name, value] : {std::pair{"lr", "0.25"},
                                    {"steps", "2"},
                                    {"model.bias", "false"},
                                    {"warmup", "1"},
                                    {"seed", "7"},
                                    {"clip", "0.5"}})
    CHECK(values.at(name) == value);
  CHECK(contains(f.json("json")["command"].get<std::string>(), " --lr 0.25 --warmup 1 --clip 0.5 --steps 2 "));
  f.succeeds("train +small --steps 2 --no-bias --no-bias=false --lr 0 --lr x --lr 1 -q --checkpoint @plain");
  CHECK(load_checkpoint(f / "plain").values.at("model.bias") == "true");
  f.refuses("train +small --lr 1 --lr x", 2, "--lr: \"x\" is not a number above 0");
  f.refuses("train +small --steps 2 --epochs 2", 2, "--steps excludes --epochs");
}

TEST_CASE("every verb takes the last value of an option, and all values of a list") {
  const Folder f;
  f.succeeds("train +small --steps 2 -q --checkpoint @c");
  f.succeeds("convert @c @out --to rms_norm --to crms_norm -q");
  CHECK(contains(f.succeeds("info @out").out, "crms_norm"));
  const auto said = [&](const std::string& options) { return f.succeeds("sample @c abc -q " + options).out; };
  CHECK(said("--length 40 --temperature 1 --temperature 0 --length 5") == said("--length 5 --temperature 0"));
  const std::string sampled = "--length 30 --seed 3", whole = said(sampled), c = " --stop c", y = " --stop y";
  REQUIRE(whole.starts_with("abc cy"));  // each of the two would end the text at another place
  CHECK(said(sampled + c + y) == "abc \n");
  CHECK(said(sampled + y + c) == "abc \n");
  f.succeeds("audit --model gpt --width 8 --width 16 --depth 1 -q --json @a --json @b");
  CHECK_FALSE(std::filesystem::exists(f / "a"));
  CHECK(contains(f.json("b")["command"].get<std::string>(), "--width 16 "));
  CHECK_FALSE(contains(f.json("b")["command"].get<std::string>(), "--width 8"));
  for (const std::string line :
       {"prove --controls 1", "explain --form rms_norm", "table --steps 1", "experiment --report x",
        "verify --tolerance 1", "hooks --json x", "compare --map x", "perturb --seed 1", "rotate --seed 1",
        "import --max-shard-size 1GB", "export --like x", "evaluate --threads 1", "lr-find --from 1", "plot --svg x",
        "info --json x"}) {
    const std::string again = line + line.substr(line.find(' ')) + " --no-such-option";  // nothing runs
    CHECK_FALSE(contains(f.run(again).err, "received"));
  }
}
