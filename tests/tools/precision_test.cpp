// train --precision: weights and states stay f32 in the file, which knows of it; what does not go with it is refused.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "tests/support/catch.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using nlohmann::json;

namespace {

ChildResult train(const Folder& f, std::vector<std::string> more) {
  more.insert(more.end(), {"--steps", "6", "-q"});
  return run_child(small(f, "train", more));
}

void check_refused(const ChildResult& r, int code, const std::string& part) {
  INFO(r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(contains(r.err, part));
}

}  // namespace

TEST_CASE("train --precision bf16: other losses, f32 weights and states, a file that knows of it and is gone on with") {
  const Folder f;
  const auto with = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--checkpoint", f.file(name), "--json", f.file(name + ".json"), "--save-every", "2"});
    return train(f, more);
  };
  const std::vector<std::string> bf16 = {"--precision", "bf16"},
                                 stream = {"--precision", "bf16", "--stream-precision", "bf16"};
  REQUIRE(with("full", {}).code == 0);
  REQUIRE(with("bf16", bf16).code == 0);
  REQUIRE(with("stream", stream).code == 0);
  const auto losses = [&](const char* name) {
    return json::parse(read(f.file(name) + ".json"))["curves"]["loss"]["training loss"];
  };
  CHECK(losses("bf16") != losses("full"));
  CHECK(losses("bf16") != losses("stream"));
  for (size_t i = 0; i < 6; ++i)
    CHECK(losses("stream")[i].get<double>() == Approx(losses("full")[i].get<double>()).epsilon(0.05));
  const std::string command = json::parse(read(f.file("stream.json")))["command"];
  CHECK(contains(command, "--precision bf16 --stream-precision bf16"));

  const Checkpoint saved = load_checkpoint(f.file("stream"));
  CHECK(saved.values.at("precision") == "bf16");
  CHECK(saved.values.at("model.precision") == "bf16");
  CHECK(saved.values.at("model.stream_precision") == "bf16");
  CHECK(load_checkpoint(f.file("full")).values.at("model.precision") == "full");
  for (const TensorMap& map : {saved.weights, saved.optimizer})
    for (const auto& [name, tensor] : map) CHECK(tensor.dtype() != DType::bf16);

  // The checkpoint of step 4 goes on to the same file; with another precision none does.
  std::filesystem::copy_file(f.file("stream.previous"), f.file("again"));
  CHECK(integer_at(load_checkpoint(f.file("again")).values, "step") == 4);
  CHECK(with("again", stream).code == 0);
  CHECK(read(f.file("again")) == read(f.file("stream")));
  check_refused(with("bf16", {"--precision", "full"}), 3, "was trained with --precision bf16, asked for is full");
  check_refused(with("full", bf16), 3, "was trained with --precision full, asked for is bf16");
  check_refused(with("bf16", stream), 3, "was trained with --stream-precision full, asked for is bf16");

  // Its weights begin a training in f32, and are those of a model that verify holds against itself in f64.
  CHECK(train(f, {"--init", f.file("stream")}).code == 0);
  CHECK(run_child({"verify", f.file("stream"), f.file("stream")}).code == 0);
}

TEST_CASE("train --precision: f16, another dtype and a bf16 stream alone are refused with the reason") {
  const Folder f;
  check_refused(train(f, {"--precision", "f16"}), 2, "needs no scaling");
  check_refused(train(f, {"--precision", "int8"}), 2, "\"int8\" is not one of full|bf16");
  check_refused(train(f, {"--precision", "bf16", "--dtype", "f64"}), 2,
                "--precision bf16 does not go with --dtype f64");
  check_refused(train(f, {"--stream-precision", "bf16"}), 2, "--stream-precision bf16 needs --precision bf16");
}

TEST_CASE("what is shown in one dtype refuses --precision bf16") {
  const Folder f;
  for (const char* verb : {"prove", "table", "audit"})
    check_refused(run_child({verb, "--precision", "bf16"}), 2, "\"bf16\" is not full, of which alone this is shown");
}
