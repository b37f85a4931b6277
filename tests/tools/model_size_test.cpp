// Sizes of models in files: 0 means a size that follows from others. Forged sizes are refused before memory is
// allocated.
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "tests/tools/small_run.h"

namespace {

const std::string kTranslator =
    "train --model translator --width 8 --depth 2 --heads 2 --context 8 --letters 5 --batch 4 -q ";

// The sizes of a Transformer and of a translator that may be 0: they then follow from the others.
constexpr const char* kDerived[] = {"model.head_width", "model.kv_heads", "model.mlp_width", "model.decoder_depth"};

// Saves the model with its initial weights. In its description `key` has the given value.
void save_described(const std::string& path, const nn::Module& model, const std::string& key,
                    const std::string& value) {
  Metadata description = training::describe(model);
  REQUIRE(description.contains(key));
  description[key] = value;
  save_safetensors(path, model.state_dict(), description);
}

nn::Gpt rotary_gpt() {
  return nn::Gpt({.vocab = 11,
                  .context = 16,
                  .transformer = {.width = 8, .depth = 1, .heads = 2, .positions = nn::Positions::rotary}});
}

}  // namespace

TEST_CASE("train --init and --checkpoint take a size that follows from others as given or as 0") {
  const Folder f;
  f.succeeds(kTranslator + "--steps 1 --checkpoint @c");
  CHECK(load_checkpoint(f / "c").values.at("model.decoder_depth") == "2");
  f.succeeds(kTranslator + "--steps 1 --init @c");
  for (const char* key : kDerived) {
    Checkpoint older = load_checkpoint(f / "c");
    older.values[key] = "0";
    save_checkpoint(f / "older", older);
    INFO(key);
    f.succeeds(kTranslator + "--steps 1 --init @older");
    f.succeeds(kTranslator + "--steps 1 --checkpoint @older");
    f.refuses(kTranslator + "--steps 1 --decoder-depth 3 --init @older", 3, "its model.decoder_depth is 2, not 3");
    f.refuses(kTranslator + "--steps 1 --decoder-depth 3 --checkpoint @older", 3,
              "was trained with --decoder-depth 2, not 3");
  }
}

TEST_CASE("train --init refuses a forged size before it takes memory for the model") {
  const Folder f;
  const nn::EncoderDecoder model({.vocab = 7, .context = 8, .transformer = {.width = 8, .depth = 1, .heads = 2}});
  const std::string name = f / "forged";
  for (const auto& [key, value, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"model.decoder_depth", "1000000000", "a model of these options has 1000000001 blocks, the file holds"},
           {"model.depth", "60000", "a model of these options has 60001 blocks, the file holds"},
           {"model.mlp_width", "16000000", "parameters, the file holds"},
           {"model.vocab", "1000000000000", "parameters, the file holds"},
           {"model.context", "1000000000000", "parameters, the file holds"}}) {
    save_described(name, model, key, value);
    INFO(key);
    f.refuses("train --init @forged --steps 1 -q --letters 5", 3, says);
  }
}

TEST_CASE("a context of a million: convert and verify and audit show 4096 positions at most and say so") {
  const Folder f;
  const std::string all = "1048576";
  save_described(f / "long", rotary_gpt(), "model.context", all);
  CHECK_THAT(f.succeeds("convert @long @rms --to rms_norm").out,
             Contains("logits of random inputs, the first 4096 of 1048576 positions, differ by"));
  CHECK_THAT(f.succeeds("verify @long @rms").out, Contains("the first 4096 of 1048576 positions"));
  CHECK_THAT(f.succeeds("audit --checkpoint @long -q").out,
             Contains("The examples were the first 1024 of 1048576 positions."));
  const nn::EncoderDecoder pairs(
      {.vocab = 7,
       .context = 8,
       .transformer = {.width = 8, .depth = 1, .heads = 2, .positions = nn::Positions::rotary}});
  save_described(f / "pairs", pairs, "model.context", all);
  CHECK_THAT(f.succeeds("verify @pairs @pairs").out, Contains("the first 4096 of 1048576 positions"));
}

TEST_CASE("random inputs have at most 4096 tokens if the vocabulary has no more") {
  const auto shape = [](int64_t vocab, int64_t context, int64_t rows) {
    return training::ModelOptions(training::kGpt, {}, {{"vocab", vocab}, {"context", context}}).inputs(rows, 1).shape();
  };
  CHECK(shape(10, 16, 4) == Dims{4, 16});
  CHECK(shape(100, 16, 4) == Dims{7, 16});
  CHECK(shape(10, 2048, 4) == Dims{2, 2048});
  CHECK(shape(10, 4096, 4) == Dims{1, 4096});
  CHECK(shape(10, 1 << 20, 4) == Dims{1, 4096});
  CHECK(shape(10'000, 1 << 20, 4) == Dims{3, 4096});
  const training::ModelOptions pairs(training::kTranslator, {}, {{"vocab", 10}, {"context", 1 << 20}});
  CHECK(pairs.inputs(4, 1).shape() == Dims{1, 2 * 4096});
}
