// A training that goes on has the weights and the tokenizer that it began with in its checkpoint.
#include "io/checkpoint.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
namespace fs = std::filesystem;

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
  int manifests = 0, steps = 0;  // the log goes on, too
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
