// The token that ends a text, in the config.json of an exported folder.
#include "tests/tools/small_run.h"

using namespace isonorm;
using nlohmann::json;

TEST_CASE("export: config.json has the tokenizer's end token, or none; never the default of the class") {
  const Folder f;
  const std::string tokenizer = "tests/fixtures/tokenizers/gpt2";  // 701 tokens, of which 700 is <|endoftext|>
  f.succeeds("tokenize " + tokenizer + " docs/training.md @ids");
  const std::string llama =
      " --form uncentred_rms_norm --affine --no-norm-bias --positions rotary_halves --activation swiglu --no-bias";
  const std::string gpt2 = " --form layer_norm --affine --tied", train = "train +small --steps 1 -q";
  for (const std::string& family : {llama, gpt2}) {
    for (const char* made : {"bytes", "tokens", "tokens_again", "like"}) std::filesystem::remove_all(f / made);
    std::filesystem::remove(f / "c"), std::filesystem::remove(f / "t");
    f.succeeds(train + family + " --checkpoint @c");
    f.succeeds(train + family + " --data @ids --token-vocab 701 --checkpoint @t --tokenizer " + tokenizer);
    f.succeeds("export @c @bytes");
    f.succeeds("export @t @tokens");
    const json bytes = f.json("bytes/config.json"), tokens = f.json("tokens/config.json");
    CHECK((bytes.contains("eos_token_id") && bytes["eos_token_id"].is_null()));
    CHECK(tokens["eos_token_id"] == 700);
    for (const json& config : {bytes, tokens})
      CHECK((config.contains("bos_token_id") && config["bos_token_id"].is_null()));
    f.succeeds("import @tokens @again");
    f.succeeds("export @again @tokens_again");
    CHECK(read(f / "tokens_again/config.json") == read(f / "tokens/config.json"));
    json like = tokens;
    like["eos_token_id"] = 5;
    write_text(f / "tokens/config.json", like.dump());
    f.succeeds("export @t @like --like @tokens");
    CHECK(f.json("like/config.json")["eos_token_id"] == 5);
  }
}
