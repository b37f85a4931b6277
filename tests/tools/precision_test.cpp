// train --precision: weights and states stay f32 in the file, which knows of it; what does not go with it is refused.
#include "io/checkpoint.h"
#include "tests/tools/small_run.h"

using namespace isonorm;

TEST_CASE("train --precision bf16: other losses, f32 weights and states, a file that knows of it and is gone on with") {
  const Folder f;
  const std::string train = "train +small --steps 6 -q --save-every 2 --json @json --checkpoint ",
                    bf16 = " --precision bf16", stream = bf16 + " --stream-precision bf16";
  const auto losses = [&](const std::string& more) {
    f.succeeds(train + more);
    return f.json("json")["course"]["losses"];
  };
  const auto of_full = losses("@full"), of_bf16 = losses("@bf16" + bf16), of_stream = losses("@stream" + stream);
  CHECK(of_bf16 != of_full);
  CHECK(of_bf16 != of_stream);
  for (size_t i = 0; i < 6; ++i) CHECK(of_stream[i].get<double>() == Approx(of_full[i].get<double>()).epsilon(0.05));
  CHECK(contains(f.json("json")["command"], stream));

  const Checkpoint saved = load_checkpoint(f / "stream");
  CHECK(saved.values.at("model.precision") == "bf16");
  CHECK(saved.values.at("model.stream_precision") == "bf16");
  CHECK(load_checkpoint(f / "full").values.at("model.precision") == "full");
  for (const TensorMap& map : {saved.weights, saved.optimizer})
    for (const auto& [name, tensor] : map) CHECK(tensor.dtype() != DType::bf16);

  // The checkpoint of step 4 goes on to the same file; with another precision none does.
  std::filesystem::copy_file(f / "stream.previous", f / "again");
  CHECK(integer_at(load_checkpoint(f / "again").values, "step") == 4);
  f.succeeds(train + "@again" + stream);
  CHECK(read(f / "again") == read(f / "stream"));
  f.refuses(train + "@bf16 --precision full", 3, "was trained with --precision bf16, not full");
  f.refuses(train + "@full" + bf16, 3, "was trained with --precision full, not bf16");
  f.refuses(train + "@bf16" + stream, 3, "was trained with --stream-precision full, not bf16");

  // Its weights begin a training in f32, and are those of a model that verify holds against itself in f64.
  f.succeeds("train +small --steps 6 -q --init @stream");
  f.succeeds("verify @stream @stream");
}

TEST_CASE("train --precision: f16, another dtype and a bf16 stream alone are refused with the reason") {
  const Folder f;
  const std::string train = "train +small --steps 6 -q ";
  for (const std::string word : {"f16", "int8"})
    f.refuses(train + "--precision " + word, 2, "\"" + word + "\" is not one of full|bf16");
  f.refuses(train + "--precision bf16 --dtype f64", 2, "--precision bf16 does not go with --dtype f64");
  f.refuses(train + "--stream-precision bf16", 2, "a bf16 residual stream needs bf16 products");
}
