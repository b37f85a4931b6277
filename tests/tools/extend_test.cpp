// train continues with more steps and other rates, begins with weights of a file, and resumes without that file.
#include <numbers>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kTrain = "train +small --lr 0.01 --warmup 2 ", kTrain64 = kTrain + "--dtype f64 ";

// As the documentation has it: linear warm-up, then half a cosine down to 0.
double rate(double peak, int warmup, int steps, int t) {
  return t < warmup ? peak * (t + 1) / warmup
                    : peak * (1 + std::cos(std::numbers::pi * (t - warmup) / (steps - warmup))) / 2;
}

}  // namespace

TEST_CASE("train --label-smoothing: another loss") {
  const Folder f;
  const double plain = first_loss(f, kTrain), smoothed = first_loss(f, kTrain + "--label-smoothing 0.25");
  CHECK(smoothed != plain);
  f.succeeds(kTrain + "--steps 3 --label-smoothing 1");
  for (const char* share : {"-0.1", "1.01", "nan"})
    f.refuses(kTrain + "--label-smoothing " + share, 2, "--label-smoothing");
}

TEST_CASE("train --extend: more steps, at the rates of a training with the longer length") {
  const Folder f;
  f.succeeds(kTrain64 + "--steps 30 -q --checkpoint @c");
  std::filesystem::copy_file(f / "c", f / "c30");
  f.refuses(kTrain64 + "--steps 600 --checkpoint @c", 3,
            "c: was trained with --steps 30, not 600; --extend continues with that\n");
  CHECK(read(f / "c") == read(f / "c30"));

  const std::string longer = kTrain64 + "--steps 600 --weight-decay 0 --checkpoint ";
  const std::string said = f.succeeds(longer + "@c --extend --log @log --json @json --report @page").err;
  CHECK(contains(said, "c: going on after step 30\n"));
  CHECK(contains(said,
                 "to step 30 with --steps 30 --weight-decay 0.01; from here on with the rates of a training of 600 "
                 "steps, the next being 9.95e-03\n"));
  int step = 30;
  for (const auto& line : f.lines("log")) {
    if (!line.contains("lr")) continue;
    CHECK(line["lr"].get<double>() == Approx(rate(0.01, 2, 600, step)).epsilon(1e-13));
    CHECK(line["step"] == ++step);
  }
  CHECK(step == 600);
  CHECK(f.json("json")["environment"]["earlier"] == "to step 30 with --steps 30 --weight-decay 0.01");
  CHECK(contains(read(f / "page"), "Extended: to step 30 with"));

  // A process that was killed between its two names for the checkpoint left them as one file.
  std::filesystem::remove(f / "c.previous");
  std::filesystem::create_hard_link(f / "c", f / "c.previous");
  f.succeeds(longer + "@c");

  // Interrupted it goes on with the same command, bit-equal; again without --extend, since nothing differs then.
  f.gives(130, longer + "@c30 --extend", {.interrupt_after = "step 60/"});
  CHECK(read(f / "c30") != read(f / "c"));
  const int64_t at = integer_at(load_checkpoint(f / "c30").values, "step");
  CHECK((at > 30 && at < 600));
  f.succeeds(longer + "@c30");
  CHECK(read(f / "c30") == read(f / "c"));
}

TEST_CASE("train --extend: once more, and options that may not change") {
  const Folder f;
  f.succeeds(kTrain + "--steps 3 -q --checkpoint @c");
  f.succeeds(kTrain + "--steps 6 -q --extend --checkpoint @c");
  f.succeeds(kTrain + "--steps 9 -q --extend --clip 0.5 --checkpoint @c");
  CHECK(load_checkpoint(f / "c").values.at("earlier") == "to step 3 with --steps 3; to step 6 with --clip 1 --steps 6");
  const std::string extend = kTrain + "--extend ";
  f.refuses(extend + "--steps 8 --clip 0.5 --checkpoint @c", 3, "c: is after step 9, --steps is 8\n");
  f.refuses(extend + "--steps 12 --seed 2 --checkpoint @c", 3, "c: was trained with --seed 1, not 2\n");
  f.refuses(extend + "--checkpoint @none", 3, "none: there is no checkpoint to extend\n");
  f.refuses(extend, 2, "--extend needs --checkpoint");
}

TEST_CASE("train --init: begins with the weights of a checkpoint, a safetensors file or a converted one") {
  const Folder f;
  f.succeeds(kTrain64 + "--steps 20 -q --checkpoint @c");
  const auto loss = [&](const std::string& more) { return first_loss(f, kTrain64 + more); };
  const double trained = loss("--init @c");
  CHECK(std::abs(trained - loss("")) > 1e-3);
  save_safetensors(f / "plain", load_checkpoint(f / "c").weights);
  CHECK(loss("--init @plain") == trained);
  // Weights stored in the coordinates of a form are taken out of them: then every form trains as Pre-LN does.
  for (const std::string form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    f.succeeds("convert @c @" + form + " --to " + form + " -q");
    for (const char* asked : {"layer_norm", "rms_norm", "crms_norm"})
      CHECK(std::abs(loss("--init @" + form + " --form " + asked) - trained) < 1e-13);
  }
  CHECK(std::abs(first_loss(f, kTrain + "--init @crms_norm --dtype f32") - trained) < 1e-6);
  // These arrangements keep gains after sums and branches.
  for (const std::string connection : {"post_ln", "sandwich"}) {
    const std::string model = "--affine --connection " + connection;
    f.succeeds(kTrain64 + model + " --steps 20 -q --checkpoint @" + connection);
    f.succeeds("convert @" + connection + " @converted --to crms_norm -q");
    const double before = loss(model + " --form crms_norm --init @" + connection);
    CHECK(std::abs(loss(model + " --form crms_norm --init @converted") - before) < 1e-13);
    std::filesystem::remove(f / "converted");
  }
}

TEST_CASE("train --init: it is another training than going on, and one that is gone on with") {
  const Folder f;
  f.succeeds(kTrain + "--steps 20 -q --checkpoint @c");
  const std::string init = kTrain + "--steps 400 --init @c --checkpoint ";
  CHECK(contains(f.succeeds(init + "@whole --log @log").err, "c: beginning with its weights\n"));
  const auto lines = f.lines("log");
  const auto first = std::ranges::find_if(lines, [](const auto& line) { return line.contains("lr"); });
  REQUIRE(first != lines.end());
  CHECK((*first)["step"] == 1);
  CHECK((*first)["lr"] == 0.005);
  f.gives(130, init + "@part", {.interrupt_after = "step 60/"});
  f.succeeds(init + "@part");
  CHECK(read(f / "part") == read(f / "whole"));
  // The weights need not be there any more, but others are others.
  f.succeeds(kTrain + "--steps 400 -q --checkpoint @part");
  f.refuses(kTrain + "--steps 400 --init @whole --checkpoint @part", 3,
            "part: did not begin with the weights of --init");
}

TEST_CASE("train --init: another model is refused, and named") {
  const Folder f;
  f.succeeds(kTrain + "--steps 2 -q --checkpoint @c");
  const std::string init = kTrain + "--init @c ", c = "isonorm train: " + f / "c";
  f.refuses(init + "--eps 1e-6", 3, c + ": its model.eps is 1e-05, not 1e-06\n");
  f.refuses(init + "--mlp-width 16", 3, c + ": its model.mlp_width is 32, not 16\n");
  f.refuses(init + "--connection post_ln", 3, c + ": its model.connection is pre_ln, not post_ln\n");
  f.refuses(init + "--form none", 3, c + ": its stream is rms_norm, not none: a different function\n");
  std::filesystem::remove(f / "c");
  f.refuses(init, 4, c + ": cannot open: No such file or directory\n");
}

TEST_CASE("train --evaluate-every: measurements are lines in the terminal") {
  const Folder f;
  const std::string train = kTrain + "--steps 25 --evaluate-every 10 --json @json";
  const std::string said = f.succeeds(train).err;
  const auto evaluations = f.json("json")["evaluations"];
  REQUIRE(evaluations.size() == 3);
  for (int i = 0; i < 2; ++i) {
    const auto& e = evaluations[i];
    char line[160];
    std::snprintf(line, sizeof line,
                  "step %d0/25  held-out loss %.4f, perplexity %.3f, test accuracy %.2f %% (%d of 72 tokens)\n", i + 1,
                  e["loss"].get<double>(), std::exp(e["loss"].get<double>()), 100 * e["accuracy"].get<double>(),
                  e["right"].get<int>());
    CHECK(contains(said, line));
  }
  CHECK_FALSE(contains(said, "step 25/25  held-out"));  // that is the sentence on standard output
  const ChildResult terminal = f.succeeds(train, {.environment = {"TERM=xterm"}, .terminal = true});
  CHECK(contains(terminal.out, "\r\x1b[Kstep 10/25  held-out loss "));
}

TEST_CASE("train --init: a resumed training does not need the file") {
  const Folder f;
  const std::string small = "train +small --dtype f64 -q --lr 0.01 ";
  f.succeeds(small + "--steps 5 --checkpoint @base");
  f.succeeds(small + "--steps 5 --seed 3 --checkpoint @other");
  const std::string train = small + "--init @base --steps 8 --save-every 4 --checkpoint @c ";
  f.succeeds(train + "--log @log");
  const std::string whole = read(f / "c");
  REQUIRE(integer_at(load_checkpoint(f / "c.previous").values, "step") == 4);
  fs::copy_file(f / "c.previous", f / "kept");
  fs::rename(f / "base", f / "elsewhere");
  for (const std::string& line : Words{train + "--log @log", "train --config @c.toml -q --checkpoint @c",
                                       "train --config @c.toml --steps 8 -q --checkpoint @c"}) {
    INFO(line);
    fs::copy_file(f / "kept", f / "c", fs::copy_options::overwrite_existing);
    f.succeeds(line);
    CHECK(read(f / "c") == whole);
    CHECK(contains(read(f / "c.toml"), "init = \"" + f / "base"));
  }
  int manifests = 0, steps = 0;  // the log is continued, too
  for (const nlohmann::json& line : f.lines("log"))
    manifests += line.contains("manifest"), steps += line.contains("lr");
  CHECK(manifests == 2);
  CHECK(steps == 8);
  // Other weights are refused, and so are weights for a training that began without.
  fs::copy_file(f / "other", f / "base");
  f.refuses(train, 3, "c: did not begin with the weights of --init");
  f.refuses(small + "--init @none --steps 5 --checkpoint @other", 3, "other: did not begin with the weights of --init");
  f.refuses(small + "--init @none --steps 5 --checkpoint @new", 4, "none: cannot open: No such file or directory");
}

TEST_CASE("train --tokenizer: a resumed training does not need the file") {
  const Folder f;
  fs::copy("tests/fixtures/tokenizers/gpt2", f / "tok", fs::copy_options::recursive);
  f.succeeds("tokenize @tok docs/ops.md @ids");
  const std::string train = "train +small --data @ids --token-vocab 704 --tokenizer @tok -q --checkpoint @c ";
  f.succeeds(train + "--steps 2");
  fs::rename(f / "tok", f / "elsewhere");
  f.succeeds(train + "--steps 3 --extend");
  CHECK(f.run("sample @c abc --length 3 -q").code == 0);
  f.gives(4, "train +small --data @ids --token-vocab 704 --tokenizer @tok -q --steps 1 --checkpoint @new");
}

TEST_CASE("out of memory: verbs that train name --batch and --accumulate") {
#ifndef __SANITIZE_ADDRESS__
  const Folder f;
  for (const std::string line : {"train +small --batch 100000000 --steps 1", "prove +small --batch 100000000 --steps 1",
                                 "lr-find +small --batch 100000000"}) {
    const ChildResult r =
        f.gives(70, line, {.environment = {"OMP_NUM_THREADS=1"}, .limits = {{RLIMIT_AS, rlim_t{4} << 30}}});
    CHECK(contains(r.err, "out of memory"));
    CHECK(r.err.ends_with("; a smaller --batch or a larger --accumulate takes less\n"));
    CHECK(r.out.empty());
  }
#endif
}
