// Input from users: numbers out of range, very long words and lists, and names with control sequences for a terminal.
#include "tests/tools/small_run.h"

TEST_CASE("numbers beyond the range of an option are refused with the word and the limit") {
  const Folder f;
  const std::pair<std::string, std::string> wrong[] = {
      {"sample @c --length 9223372036854775808",
       "--length: \"9223372036854775808\" is not a whole number from 1 to 9223372036854775807"},
      {"sample @c --count 99999999999999999999",
       "--count: \"99999999999999999999\" is not a whole number from 1 to 9223372036854775807"},
      {"sample @c --top-k -9223372036854775809",
       "--top-k: \"-9223372036854775809\" is not a whole number from 0 to 9223372036854775807"},
      {"sample @c --temperature 1e999", "--temperature: \"1e999\" is not a number from 0 on"},
      {"table --steps 2147483648", "--steps: \"2147483648\" is not a whole number from 1 to 2147483647"},
      {"table --threads 18446744073709551617",
       "--threads: \"18446744073709551617\" is not a whole number from 1 to 1024"},
      {"train +small --steps 2147483648", "--steps: \"2147483648\" is not a whole number from 1 to 2147483647"},
      {"train +small --evaluate-every 4294967296",
       "--evaluate-every: \"4294967296\" is not a whole number from 0 to 2147483647"},
      {"train +small --seed 18446744073709551616",
       "--seed: \"18446744073709551616\" is not a whole number from 0 to 18446744073709551615"},
      {"prove +small --controls 4294967297", "--controls: \"4294967297\" is not a whole number from 1 to 2147483647"},
      {"perturb @a @b --ulp 4294967297", "--ulp: \"4294967297\" is not a whole number from 1 to 1024"},
      {"export @a @b.onnx --opset 18446744073709551633", "--opset: 18446744073709551633 not in {17,23}"},
      {"experiment controls --seeds 4294967320", "--seeds: \"4294967320\" is not a whole number from 24 to 100000"},
      {"compare @a @b --tolerance 1", "--tolerance: \"1\" is not a number from 0 to below 1"},
      {"explain layer_norm 1,2 --eps inf", "--eps: \"inf\" is not a number from 0 on"},
      {"export @a @b --max-shard-size 9223372036854775808",
       "--max-shard-size: \"9223372036854775808\" is not a size from 1 byte to below 2^63"},
      {"lr-find +small --to 1e308", "--from 1e-06 --to 1e+308: expected two rates above 0"},
      {"lr-find +small --to 1e309", "--to: \"1e309\" is not a number above 0"}};
  for (const auto& [line, says] : wrong) f.refuses(line, 2, says);
  for (const char* size : {"1e3", "-1", "1.5.5GB", "GB", "5XB", "0", "0.4", "8EiB"})
    f.refuses(text("export @a @b --max-shard-size ", size), 2, text('"', size, "\" is not a size"));
  f.succeeds("lr-find +small --steps 20 --from 1 --to 1e300");
}

TEST_CASE("a word of 100,000 characters is shown by its ends") {
  const Folder f;
  const std::string word(100'000, 'w');
  for (const std::string line : {"",
                                 "train +small --lr ",
                                 "train +small --form ",
                                 "train +small --model ",
                                 "train --",
                                 "train +small --seed ",
                                 "sample @c --length ",
                                 "explain layer_norm ",
                                 "explain ",
                                 "experiment ",
                                 "rotate @a @b --basis haar:",
                                 "prove +small --forms ",
                                 "table --optimizers ",
                                 "train +small --save-every ",
                                 "convert @a @b --to ",
                                 "man ",
                                 "convert @a @b --to rms_norm --dtype ",
                                 "export @a @b --max-shard-size ",
                                 "verify @a @b --up-to ",
                                 "train +small --device ",
                                 "info "}) {
    INFO(line);
    const ChildResult r = f.run(line + word);
    CHECK(r.code >= 2);
    CHECK(r.err.starts_with("isonorm"));
    CHECK(r.err.size() < 3000);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  }
}

TEST_CASE("of 20,000 tensors that a model does not know a message names 20") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  TensorMap many;
  for (int i = 0; i < 20'000; ++i) many.add(text("unknown.tensor.", i), from_vector<float>({1}, {1}));
  Metadata description;
  for (const auto& [key, value] : load_checkpoint(f / "c").values)
    if (key.starts_with("model")) description[key] = value;
  save_safetensors(f / "many", many, description);
  const ChildResult r = f.run("train +small --steps 1 --init @many");
  INFO(r.err);
  CHECK(r.code == 3);
  CHECK(r.err.size() < 2100);
  CHECK(contains(r.err, " more"));
}

TEST_CASE("an escape in a name does not reach a terminal") {
  const Folder f;
  const std::string name = f / "\x1b[31mred\xc2\x9b";
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  f.succeeds(
      "train +small --steps 1 -q --form uncentred_rms_norm --affine --no-norm-bias --activation swiglu --no-bias "
      "--positions "
      "rotary_halves --checkpoint @affine");
  f.succeeds("convert @c @rms --to rms_norm -q");
  const Words kSilent = {"verify", "compare", "evaluate"};  // they name no file if all is well
  const std::vector<Words> lines = {{"convert", f / "c", name, "--to", "crms_norm"},
                                    {"rotate", f / "rms", name + ".rotated", "--basis", "haar:1"},
                                    {"perturb", f / "c", name},
                                    {"export", f / "c", name + ".onnx"},
                                    {"export", f / "affine", name + ".gguf"},
                                    {"export", f / "affine", name + ".folder"},
                                    {"info", name},
                                    {"verify", name, f / "c"},
                                    {"compare", name, f / "c"},
                                    {"evaluate", name, "--data", f / "text.txt"},
                                    {"train", "--checkpoint", name, "--preset", name},
                                    {"plot", name},
                                    {"import", name + ".none", name}};
  for (const Words& line : lines)
    for (const bool terminal : {false, true}) {
      const ChildResult r = run_child(line, {.environment = {"NO_COLOR=1"}, .terminal = terminal});
      INFO(line[0] << ": " << r.out << r.err);
      if (!std::ranges::count(kSilent, line[0])) CHECK(contains(r.out + r.err, "[31mred"));
      CHECK_FALSE(contains(r.out + r.err, "\x1b[31m"));
      CHECK_FALSE(contains(r.out + r.err, "\xc2\x9b"));
    }
}
