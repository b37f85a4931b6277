// train --connection: all are trained; Post-LN is saved, resumed and begun with; what is shown of pre_ln alone refuses
// it.
#include "io/checkpoint.h"
#include "nn/residual/all.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;

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
  f.refuses(post + "--checkpoint @pre", 3, "was trained with --connection pre_ln, asked for is post_ln\n");

  // The checkpoint of step 4 goes on to the same file.
  std::filesystem::copy_file(f / "c.previous", f / "d");
  CHECK(integer_at(load_checkpoint(f / "d").values, "step") == 4);
  f.succeeds(post + "--checkpoint @d");
  CHECK(read(f / "d") == read(f / "c"));
  f.succeeds(post + "--init @c");
}

TEST_CASE("every connection is trained, and another word is refused") {
  const Folder f;
  const std::string unknown = f.gives(2, "train +small --connection no_norm").err;
  const std::string one_step = "train +small --steps 1 -q ";
  for (const nn::Arrangement& a : nn::kArrangements) {
    CHECK(contains(unknown, a.name));
    f.succeeds(one_step + "--depth 4 --form crms_norm --affine --connection " + a.name);
  }
  f.refuses(one_step + "--form none --connection post_ln", 3,
            "isonorm train: post-normalised connections need a norm, the norm is none\n");
  f.refuses(one_step + "--depth 3 --form rms_norm --connection mix_ln", 3,
            "isonorm train: mix_ln: a quarter of 3 blocks is none, expected at least 4\n");
}

TEST_CASE("weights of post_ln go from form to form, with a gain and without") {
  const Folder f;
  f.refuses("audit --connection post_ln", 3,
            "isonorm audit: with connections post_ln the first branch reads the embeddings themselves; there is no "
            "stream to shift\n");
  f.succeeds(kTrain + "--connection post_ln --affine --steps 2 --checkpoint @gain");
  f.succeeds(kTrain + "--connection post_ln --steps 2 --checkpoint @c");
  f.succeeds(kTrain + "--steps 2 --checkpoint @pre");
  for (const auto& [from, other] : {std::pair<std::string, std::string>{"@gain", "@c"}, {"@c", "@gain"}})
    for (const std::string form : {"rms_norm", "crms_norm", "crms_isometric"}) {
      f.succeeds("convert " + from + " @out --to " + form);
      f.succeeds("verify " + from + " @out");
      f.gives(1, "verify @pre @out");
      f.gives(1, "verify " + other + " @out");
    }

  // Raw weights are one function in all forms, whatever the connections: they are only renamed.
  training::ModelFile file = training::load_model_file(f / "c");
  file.description.insert_or_assign("model.form", "rms_norm");
  save_safetensors(f / "forged", file.state, file.description);
  f.succeeds("convert @forged @out --to layer_norm");
  file.description.insert_or_assign("model.connection", "sandwiches");
  save_safetensors(f / "unknown", file.state, file.description);
  f.refuses("verify @unknown @pre", 3,
            "isonorm verify: " + f / "unknown" +
                ": model file: entry 'model.connection' is 'sandwiches', expected one of pre_ln|post_ln|");
}

TEST_CASE("a checkpoint that does not say its connections, or says too many blocks, is not read") {
  const Folder f;
  f.succeeds(kTrain + "--connection post_ln --steps 2 --checkpoint @post");
  Checkpoint silent = load_checkpoint(f / "post"), deep = silent;
  silent.values.erase("model.connection");
  deep.values["model.depth"] = "60000";
  for (const auto& [c, says] :
       {std::pair{&silent, "there is no entry 'model.connection'"}, {&deep, "has 60000 blocks, the file holds "}}) {
    save_checkpoint(f / "forged", *c);
    for (const char* line :
         {"convert @forged @out --to rms_norm", "verify @forged @forged", "audit --checkpoint @forged"})
      f.refuses(line, 3, says);
    f.gives(3, kTrain + "--steps 2 --init @forged");
    f.gives(3, kTrain + "--steps 2 --extend --checkpoint @forged");
    CHECK_FALSE(std::filesystem::exists(f / "out"));
  }
}
