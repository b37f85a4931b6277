// train --connection: Post-LN is saved, resumed and begun with. tests/model_cases trains every arrangement.
#include "nn/residual/all.h"
#include "tests/tools/small_run.h"

namespace {
const std::string kTrain = "train +small --form layer_norm -q ";
}

TEST_CASE("train --connection post_ln: another training than pre_ln, saved with its name and gone on with") {
  const Folder f;
  const std::string post = kTrain + "--connection post_ln --affine --steps 6 --save-every 2 ";
  CHECK(f.succeeds(post + "--checkpoint @c --json @json").out.starts_with("post_ln, layer_norm, "));
  const Checkpoint saved = load_checkpoint(f / "c");
  CHECK(saved.values.at("model.connection") == "post_ln");
  CHECK(saved.weights.find("norm.weight") == nullptr);
  CHECK(f.json("json")["options"]["connection"] == "post_ln");
  f.succeeds(kTrain + "--affine --steps 6 --checkpoint @pre");
  CHECK(load_checkpoint(f / "pre").values.at("model.connection") == "pre_ln");
  f.refuses(post + "--checkpoint @pre", 3, "was trained with --connection pre_ln, not post_ln\n");

  // A training resumed at step 4 ends with the same file.
  std::filesystem::copy_file(f / "c.previous", f / "d");
  CHECK(integer_at(load_checkpoint(f / "d").values, "step") == 4);
  f.succeeds(post + "--checkpoint @d");
  CHECK(read(f / "d") == read(f / "c"));
  f.succeeds(post + "--init @c");
  f.refuses("train +small --connection no_norm", 2, "pre_ln|post_ln|deepnorm|");
}
