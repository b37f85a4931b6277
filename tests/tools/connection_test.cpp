// train --connection: all are trained; Post-LN is saved, resumed and begun with; what is shown of pre_ln alone refuses it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "nn/residual/all.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"
#include "training/model_file.h"

using namespace isonorm;

namespace {

ChildResult train(const Folder& f, std::vector<std::string> more) {
  more.insert(more.end(), {"--form", "layer_norm", "-q"});
  return run_child(small(f, "train", more));
}

// One step of a model of `depth` blocks, in that form.
ChildResult deep(const Folder& f, const std::string& depth, const std::string& form, std::vector<std::string> more) {
  more.insert(more.end(), {"--form", form, "--steps", "1", "-q"});
  std::vector<std::string> all = small(f, "train", more);
  *(std::ranges::find(all, "--depth") + 1) = depth;
  return run_child(all);
}

void check_refused(const ChildResult& r, int code, const std::string& line) {
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(r.err == line + "\n");
}

}  // namespace

TEST_CASE("train --connection post_ln: another training than pre_ln, saved with its name and gone on with") {
  const Folder f;
  const std::vector<std::string> post = {"--connection", "post_ln", "--affine", "--steps", "6", "--save-every", "2"};
  const auto with = [&](std::vector<std::string> options, const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
    return train(f, options);
  };
  const ChildResult r = with(post, {"--checkpoint", f.file("c"), "--json", f.file("json")});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(r.out.starts_with("post_ln, layer_norm, "));
  const Checkpoint saved = load_checkpoint(f.file("c"));
  CHECK(saved.values.at("model.connection") == "post_ln");
  CHECK(saved.weights.find("norm.weight") == nullptr);
  CHECK(nlohmann::json::parse(read(f.file("json")))["options"]["connection"] == "post_ln");
  REQUIRE(train(f, {"--affine", "--steps", "6", "--checkpoint", f.file("pre")}).code == 0);
  CHECK(load_checkpoint(f.file("pre")).values.at("model.connection") == "pre_ln");

  // The checkpoint of step 4 goes on to the same file.
  std::filesystem::copy_file(f.file("c.previous"), f.file("d"));
  CHECK(integer_at(load_checkpoint(f.file("d")).values, "step") == 4);
  CHECK(with(post, {"--checkpoint", f.file("d")}).code == 0);
  CHECK(read(f.file("d")) == read(f.file("c")));

  const auto c = f.file("c"), pre = f.file("pre");
  check_refused(train(f, {"--connection", "pre_ln", "--affine", "--steps", "6", "--checkpoint", c}), 3,
                "isonorm train: " + c + ": was trained with --connection post_ln, asked for is pre_ln");
  check_refused(with(post, {"--checkpoint", pre}), 3,
                "isonorm train: " + pre + ": was trained with --connection pre_ln, asked for is post_ln");
  check_refused(train(f, {"--affine", "--init", c}), 3,
                "isonorm train: " + c + ": its model.connection is post_ln, asked for is pre_ln");
  CHECK(with(post, {"--init", c}).code == 0);
}

TEST_CASE("every connection is trained in every form that it has, and another word is refused") {
  const Folder f;
  const ChildResult unknown = run_child(small(f, "train", {"--connection", "no_norm"}));
  CHECK(unknown.code == 2);
  for (const nn::Arrangement& a : nn::kArrangements) {
    INFO(a.name);
    CHECK(contains(unknown.err, a.name));
    for (const char* form : {"rms_norm", "crms_norm", "crms_isometric"})
      for (const char* norms : {"--no-bias", "--affine"}) {
        const ChildResult r = deep(f, "4", form, {"--connection", a.name, norms});
        INFO(r.err);
        CHECK(r.code == 0);
      }
  }
  check_refused(deep(f, "1", "none", {"--connection", "post_ln"}), 3,
                "isonorm train: connections with a norm behind the sum: the norm is none");
  check_refused(deep(f, "3", "rms_norm", {"--connection", "mix_ln"}), 3,
                "isonorm train: mix_ln: of 3 blocks a quarter is none, expected at least 4");
}

TEST_CASE("weights of post_ln go from form to form, with a gain and without") {
  const Folder f;
  check_refused(run_child({"audit", "--connection", "post_ln"}), 3,
                "isonorm audit: with connections post_ln the first branch reads the embeddings as they are, no stream "
                "that could be shifted");
  REQUIRE(train(f, {"--connection", "post_ln", "--affine", "--steps", "2", "--checkpoint", f.file("gain")}).code == 0);
  REQUIRE(train(f, {"--connection", "post_ln", "--steps", "2", "--checkpoint", f.file("c")}).code == 0);
  REQUIRE(train(f, {"--steps", "2", "--checkpoint", f.file("pre")}).code == 0);
  const std::string gain = f.file("gain"), c = f.file("c"), pre = f.file("pre"), out = f.file("out");
  for (const std::string& from : {gain, c})
    for (const char* form : {"rms_norm", "crms_norm", "crms_isometric"}) {
      CHECK(run_child({"convert", from, out, "--to", form}).code == 0);
      CHECK(run_child({"verify", from, out}).code == 0);
      CHECK(run_child({"verify", pre, out}).code == 1);
      CHECK(run_child({"verify", from == c ? gain : c, out}).code == 1);
    }

  // Raw weights are one function in all forms, whatever the connections: they are only renamed.
  const training::ModelFile file = training::load_model_file(c);
  Metadata forged = file.description;
  forged.insert_or_assign("model.form", "rms_norm");
  save_safetensors(f.file("forged"), file.state, forged);
  CHECK(run_child({"convert", f.file("forged"), out, "--to", "layer_norm"}).code == 0);
  forged.insert_or_assign("model.connection", "sandwiches");
  save_safetensors(f.file("unknown"), file.state, forged);
  const ChildResult unknown = run_child({"verify", f.file("unknown"), pre});
  CHECK(unknown.code == 3);
  CHECK(unknown.err.starts_with(
      "isonorm verify: " + f.file("unknown") +
      ": model file: entry 'model.connection' is 'sandwiches', expected one of pre_ln|post_ln|"));
}

TEST_CASE("a checkpoint that does not say its connections, or says too many blocks, is not read") {
  const Folder f;
  const std::string post = f.file("post"), forged = f.file("forged"), out = f.file("out");
  REQUIRE(train(f, {"--connection", "post_ln", "--steps", "2", "--checkpoint", post}).code == 0);
  Checkpoint silent = load_checkpoint(post), deep = silent;
  silent.values.erase("model.connection");
  deep.values["model.depth"] = "60000";
  for (const auto& [c, says] :
       {std::pair{&silent, "there is no entry 'model.connection'"}, {&deep, "has 60000 blocks, the file holds "}}) {
    save_checkpoint(forged, *c);
    for (const auto& words : std::vector<std::vector<std::string>>{{"convert", forged, out, "--to", "rms_norm"},
                                                                   {"verify", forged, forged},
                                                                   {"audit", "--checkpoint", forged}}) {
      const ChildResult r = run_child(words);
      INFO(r.err);
      CHECK(r.code == 3);
      CHECK(contains(r.err, says));
    }
    CHECK(train(f, {"--steps", "2", "--init", forged}).code == 3);
    CHECK(train(f, {"--steps", "2", "--extend", "--checkpoint", forged}).code == 3);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}
