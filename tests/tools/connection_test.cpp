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
  CHECK(saved.values.at("connection") == "post_ln");
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
  forged.insert_or_assign("model.stream", "rms_norm");
  save_safetensors(f.file("forged"), file.state, forged);
  CHECK(run_child({"convert", f.file("forged"), out, "--to", "layer_norm"}).code == 0);
  forged.insert_or_assign("model.connection", "sandwiches");
  save_safetensors(f.file("unknown"), file.state, forged);
  check_refused(run_child({"verify", f.file("unknown"), pre}), 3,
                "isonorm verify: model file: entry 'model.connection' is 'sandwiches', which it cannot be");
}

TEST_CASE("a checkpoint that says two things of its connections is read as neither") {
  const Folder f;
  const auto options = [&](const std::string& residual, const std::string& file) {
    return train(f, {"--connection", residual, "--steps", "2", "--extend", "--checkpoint", file});
  };
  const std::string post = f.file("post"), forged = f.file("forged"), out = f.file("out");
  REQUIRE(train(f, {"--connection", "post_ln", "--steps", "2", "--checkpoint", post}).code == 0);
  const Checkpoint saved = load_checkpoint(post);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"model.connection", ""}, {"model.connection", "pre_ln"}, {"connection", ""}, {"connection", "pre_ln"}}) {
    INFO(key << " " << value);
    Checkpoint c = saved;
    c.values.erase(key);
    if (!value.empty()) c.values[key] = value;
    save_checkpoint(forged, c);
    for (const auto& words : std::vector<std::vector<std::string>>{{"convert", forged, out, "--to", "rms_norm"},
                                                                   {"verify", forged, forged},
                                                                   {"audit", "--checkpoint", forged}})
      CHECK(run_child(words).code == 3);
    CHECK(train(f, {"--steps", "2", "--init", forged}).code == 3);
    CHECK(options("pre_ln", forged).code == 3);
    CHECK_FALSE(std::filesystem::exists(out));
  }
  Checkpoint deep = saved;
  for (const char* key : {"connection", "model.connection"}) deep.values[key] = "pre_ln";
  deep.values["model.depth"] = "1048576";
  save_checkpoint(forged, deep);
  const ChildResult audit = run_child({"audit", "--checkpoint", forged});
  CHECK(audit.code == 3);
  CHECK(contains(audit.err, "has 1048576 blocks, the file holds "));
}

TEST_CASE("a checkpoint from before there was a choice is gone on with, and is pre_ln") {
  // tests/fixtures/checkpoints/write.cpp says how it was trained.
  const Folder f;
  {
    std::ofstream text(f.file("text"));
    for (int i = 0; i < 60; ++i) text << "abc";
  }
  std::filesystem::copy_file("tests/fixtures/checkpoints/trained.ckpt", f.file("c"));
  const auto resumed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train",     "--model",    "gpt",     "--data", f.file("text"),
                                    "--form",    "layer_norm", "--width", "4",      "--depth",
                                    "1",         "--heads",    "2",       "--mlp",  "6",
                                    "--context", "4",          "--batch", "2",      "--warmup",
                                    "1",         "--threads",  "1",       "-q",     "--checkpoint",
                                    f.file("c")};
    all.insert(all.end(), more.begin(), more.end());
    return run_child(all);
  };
  check_refused(resumed({"--steps", "3", "--connection", "post_ln"}), 3,
                "isonorm train: " + f.file("c") + ": was trained with --connection pre_ln, asked for is post_ln");
  CHECK(resumed({"--steps", "4", "--extend"}).code == 0);
  const Checkpoint on = load_checkpoint(f.file("c"));
  CHECK(integer_at(on.values, "step") == 4);
  CHECK(on.values.at("model.connection") == "pre_ln");
}

TEST_CASE("a checkpoint under the names of an older program is gone on with, begun with and told apart") {
  const Folder f;
  for (const bool post : {true, false}) {
    const std::string now = post ? "post_ln" : "pre_ln", then = post ? "post_norm" : "pre_norm";
    const std::string whole = f.file(now), half = f.file(then);
    REQUIRE(train(f, {"--connection", now, "--steps", "4", "--checkpoint", whole}).code == 0);
    REQUIRE(train(f, {"--connection", now, "--steps", "2", "--checkpoint", half}).code == 0);
    Checkpoint old = load_checkpoint(half);
    for (const char* prefix : {"", "model."}) {
      CHECK(old.values.erase(text(prefix, "connection")) == 1);
      old.values[text(prefix, "residual")] = then;
    }
    save_checkpoint(half, old);
    CHECK(train(f, {"--connection", now, "--steps", "1", "--init", half}).code == 0);
    CHECK(train(f, {"--connection", post ? "pre_ln" : "post_ln", "--steps", "1", "--init", half}).code == 3);
    CHECK(run_child({"verify", half, half}).code == 0);
    CHECK(train(f, {"--connection", post ? "pre_ln" : "post_ln", "--steps", "4", "--extend", "--checkpoint", half})
              .code == 3);
    CHECK(train(f, {"--connection", now, "--steps", "4", "--extend", "--checkpoint", half}).code == 0);
    CHECK(load_checkpoint(half).values.at("model.connection") == now);
    // Both names at once are no description.
    old.values["model.connection"] = now;
    save_checkpoint(f.file("both"), old);
    CHECK(train(f, {"--connection", now, "--steps", "1", "--init", f.file("both")}).code == 3);
  }
}
