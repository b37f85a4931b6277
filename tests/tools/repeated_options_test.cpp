// An option that is given several times has its last value.
#include "io/checkpoint.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

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
