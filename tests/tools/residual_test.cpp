// train --residual: Post-LN is trained, saved, resumed and begun with; what is shown of pre_norm alone refuses it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
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

void check_refused(const ChildResult& r, int code, const std::string& line) {
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(r.err == line + "\n");
}

}  // namespace

TEST_CASE("train --residual post_norm: another training than pre_norm, saved with its name and gone on with") {
  const Folder f;
  const std::vector<std::string> post = {"--residual", "post_norm", "--affine", "--steps", "6", "--save-every", "2"};
  const auto with = [&](std::vector<std::string> options, const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
    return train(f, options);
  };
  const ChildResult r = with(post, {"--checkpoint", f.file("c"), "--json", f.file("json")});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(r.out.starts_with("post_norm, layer_norm, "));
  const Checkpoint saved = load_checkpoint(f.file("c"));
  CHECK(saved.values.at("residual") == "post_norm");
  CHECK(saved.values.at("model.residual") == "post_norm");
  CHECK(saved.weights.find("norm.weight") == nullptr);
  CHECK(nlohmann::json::parse(read(f.file("json")))["manifest"]["options"]["residual"] == "post_norm");
  REQUIRE(train(f, {"--affine", "--steps", "6", "--checkpoint", f.file("pre")}).code == 0);
  CHECK(load_checkpoint(f.file("pre")).values.at("model.residual") == "pre_norm");

  // The checkpoint of step 4 goes on to the same file.
  std::filesystem::copy_file(f.file("c.previous"), f.file("d"));
  CHECK(integer_at(load_checkpoint(f.file("d")).values, "step") == 4);
  CHECK(with(post, {"--checkpoint", f.file("d")}).code == 0);
  CHECK(read(f.file("d")) == read(f.file("c")));

  const auto c = f.file("c"), pre = f.file("pre");
  check_refused(train(f, {"--affine", "--steps", "6", "--checkpoint", c}), 3,
                "isonorm train: " + c + ": was trained with --residual post_norm, asked for is pre_norm");
  check_refused(with(post, {"--checkpoint", pre}), 3,
                "isonorm train: " + pre + ": was trained with --residual pre_norm, asked for is post_norm");
  check_refused(train(f, {"--affine", "--init", c}), 3,
                "isonorm train: " + c + ": its model.residual is post_norm, asked for is pre_norm");
  CHECK(with(post, {"--init", c}).code == 0);
}

TEST_CASE("train --residual post_norm is of the layer_norm form alone") {
  const Folder f;
  for (const char* form : {"rms_norm", "crms_norm", "crms_isometric", "none"})
    check_refused(run_child(small(f, "train", {"--residual", "post_norm", "--form", form, "--steps", "1", "-q"})), 3,
                  text("isonorm train: post_norm: the stream is one of ", form,
                       ", expected layer_norm: the other forms are those of pre_norm"));
  const ChildResult unknown = run_child(small(f, "train", {"--residual", "no_norm"}));
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "--residual: \"no_norm\" is not one of pre_norm|post_norm"));
}

TEST_CASE("what is shown of pre_norm alone refuses post_norm in one line") {
  const Folder f;
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"prove"}, {"prove", "--certificate"}, {"table"}, {"audit"}}) {
    std::vector<std::string> all = verb;
    all.insert(all.end(), {"--residual", "post_norm"});
    const std::string who = "isonorm " + verb[0];
    check_refused(
        run_child(all), 2,
        who + ": --residual: \"post_norm\" is not pre_norm, of which alone this is shown; see " + who + " --help");
  }

  REQUIRE(train(f, {"--residual", "post_norm", "--steps", "2", "--checkpoint", f.file("c")}).code == 0);
  REQUIRE(train(f, {"--steps", "2", "--checkpoint", f.file("pre")}).code == 0);
  const std::string why =
      "the model's residual connections are post_norm, expected pre_norm, of which alone it is shown "
      "that the forms are one function";
  const std::string c = f.file("c"), pre = f.file("pre"), out = f.file("out");
  for (const char* form : {"layer_norm", "rms_norm", "crms_norm"})
    check_refused(run_child({"convert", c, out, "--to", form}), 3, "isonorm convert: " + why);
  CHECK_FALSE(std::filesystem::exists(out));
  for (const auto& [a, b] : {std::pair{c, c}, {c, pre}, {pre, c}})
    check_refused(run_child({"verify", a, b}), 3, "isonorm verify: " + why);
  check_refused(run_child({"audit", "--checkpoint", c}), 3, "isonorm audit: " + why);

  // A description beside raw weights of another form, which would only be renamed.
  const training::ModelFile file = training::load_model_file(c);
  Metadata forged = file.description;
  forged.insert_or_assign("model.stream", "rms_norm");
  save_safetensors(f.file("forged"), file.state, forged);
  CHECK(run_child({"convert", f.file("forged"), out, "--to", "layer_norm"}).code == 3);
  forged.insert_or_assign("model.residual", "sandwich");
  save_safetensors(f.file("unknown"), file.state, forged);
  check_refused(run_child({"verify", f.file("unknown"), pre}), 3,
                "isonorm verify: model file: entry 'model.residual' is 'sandwich', which it cannot be");
}

TEST_CASE("a checkpoint that says two things of its residual connections is read as neither") {
  const Folder f;
  const auto options = [&](const std::string& residual, const std::string& file) {
    return train(f, {"--residual", residual, "--steps", "2", "--extend", "--checkpoint", file});
  };
  const std::string post = f.file("post"), forged = f.file("forged"), out = f.file("out");
  REQUIRE(train(f, {"--residual", "post_norm", "--steps", "2", "--checkpoint", post}).code == 0);
  const Checkpoint saved = load_checkpoint(post);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"model.residual", ""}, {"model.residual", "pre_norm"}, {"residual", ""}, {"residual", "pre_norm"}}) {
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
    CHECK(options("pre_norm", forged).code == 3);
    CHECK_FALSE(std::filesystem::exists(out));
  }
  Checkpoint deep = saved;
  for (const char* key : {"residual", "model.residual"}) deep.values[key] = "pre_norm";
  deep.values["model.depth"] = "1048576";
  save_checkpoint(forged, deep);
  const ChildResult audit = run_child({"audit", "--checkpoint", forged});
  CHECK(audit.code == 3);
  CHECK(contains(audit.err, "has about"));
}

TEST_CASE("a checkpoint from before there was a choice is gone on with, and is pre_norm") {
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
  check_refused(resumed({"--steps", "3", "--residual", "post_norm"}), 3,
                "isonorm train: " + f.file("c") + ": was trained with --residual pre_norm, asked for is post_norm");
  CHECK(resumed({"--steps", "4", "--extend"}).code == 0);
  const Checkpoint on = load_checkpoint(f.file("c"));
  CHECK(integer_at(on.values, "step") == 4);
  CHECK(on.values.at("model.residual") == "pre_norm");
}
