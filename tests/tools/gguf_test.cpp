// isonorm export IN OUT.gguf: the file follows ggml's docs/gguf.md, and its keys and tensors follow from the model.
// tests/fixtures/run_gguf.py compares the outputs of llama.cpp on such files.
#include "io/number_format.h"
#include "tests/tools/gguf_file.h"
#include "tests/tools/small_run.h"
#include "io/tokenizers/tokenizer.h"

using gguf::Gguf, gguf::gguf_of, gguf::held, gguf::Stored;

namespace {

std::string folder_of(const std::string& name) {
  const std::string ports = "tests/fixtures/ports/" + name;
  return std::filesystem::exists(ports) ? ports : "tests/fixtures/families/" + name;
}

}  // namespace

TEST_CASE("gguf: every tensor under llama.cpp's name, and the model's options in its keys") {
  const Folder f;
  struct Case {
    const char *name, *architecture;
    bool turns;  // the two halves of each head's queries and keys are interleaved there
  };
  for (const Case& c : {Case{"gpt2", "gpt2", false},
                        {"gpt2_untied", "gpt2", false},
                        {"gpt_bigcode", "starcoder", false},
                        {"gpt_neox", "gptneox", false},
                        {"llama", "llama", true},
                        {"olmo", "olmo", true},
                        {"qwen2", "qwen2", false},
                        {"qwen3", "qwen3", false},
                        {"stablelm", "stablelm", false},
                        {"phi", "phi2", false},
                        {"falcon", "falcon", false},
                        {"mpt", "mpt", false}}) {
    INFO(c.name);
    f.succeeds(text("import ", folder_of(c.name), " @model --dtype f32"));
    f.succeeds(text("export @model @out.gguf --family ", c.architecture));
    const training::OpenModelFile ours = training::open_model_file(f / "model");
    const Gguf g = gguf_of(f / "out.gguf");
    const auto option = [&](const char* name) { return ours.description.at(text("model.", name)); };
    const auto whole = [&](const char* name) { return std::stoll(option(name)); };
    const int64_t heads = whole("heads"), shared = whole("kv_heads"), size = whole("head_width");
    size_t expected = 0;
    for (const auto& [name, outline] : ours.state.outline) {
      INFO(name);
      const Tensor there = gguf::ours(g, name, size, c.turns);
      if (name == "head.bias" && !there.defined()) continue;  // zeros, for which there is no place
      REQUIRE(there.defined());
      CHECK(same_bytes(there, ours.state.read(name)));
      expected += g.tensors.contains(gguf::their_name(name)) ? 1 : 3;
    }
    CHECK(g.tensors.size() == expected);
    const std::string prefix = text(c.architecture, '.');
    const auto key = [&](const std::string& name) { return g.keys.at(prefix + name); };
    CHECK(g.keys.at("general.architecture") == c.architecture);
    CHECK(g.keys.at("tokenizer.ggml.model") == "no_vocab");
    CHECK(key("vocab_size") == whole("vocab"));
    CHECK(key("context_length") == whole("context"));
    CHECK(key("embedding_length") == whole("width"));
    CHECK(key("block_count") == whole("depth"));
    CHECK(key("feed_forward_length") == whole("mlp_width"));
    CHECK(key("attention.head_count") == heads);
    CHECK(key("attention.head_count_kv") == shared);
    CHECK(key("attention.key_length") == size);
    CHECK(key("attention.value_length") == size);
    const bool rms = option("form") == "uncentred_rms_norm";
    CHECK(key(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon") ==
          static_cast<float>(std::stod(option("eps"))));
    const bool rotary = option("positions") == "rotary_halves";
    CHECK(g.keys.contains(prefix + "rope.freq_base") == rotary);
    if (rotary) CHECK(key("rope.freq_base") == static_cast<float>(std::stod(option("rotary_base"))));
    if (rotary) CHECK(key("rope.dimension_count") == size * std::stod(option("rotary_share")));
    CHECK(g.keys.contains(prefix + "attention.max_alibi_bias") == (option("positions") == "alibi"));
    if (g.keys.contains(prefix + "use_parallel_residual"))
      CHECK(key("use_parallel_residual") == (option("parallel") == "true"));
  }
}

TEST_CASE("gguf: matrices are stored in the format asked for, vectors in f32") {
  const Folder f;
  f.succeeds("import " + folder_of("gpt2") + " @model --dtype f64");
  const training::OpenModelFile ours = training::open_model_file(f / "model");
  for (const auto& [dtype, type] :
       {std::pair("", 0u), {" --dtype f32", 0u}, {" --dtype f16", 1u}, {" --dtype bf16", 30u}}) {
    INFO(dtype);
    f.succeeds(text("export @model @out.gguf", dtype));
    const Gguf g = gguf_of(f / "out.gguf");
    const Stored &matrix = g.tensors.at("blk.1.ffn_up.weight"), &vector = g.tensors.at("blk.1.ffn_up.bias");
    CHECK(matrix.type == type);
    CHECK(vector.type == 0);
    const NumberFormat format =
        type == 0 ? NumberFormat(DType::f32) : NumberFormat(type == 1 ? DType::f32 : DType::bf16, type == 1);
    CHECK(same_bytes(held(matrix), rounded(ours.state.read("blocks.1.mlp.fc1.weight"), format, "").to(DType::f32)));
    CHECK(same_bytes(held(vector), ours.state.read("blocks.1.mlp.fc1.bias").to(DType::f32)));
  }
}

TEST_CASE("gguf: the tokenizer of a folder, by the names that llama.cpp has for its pattern and for kinds of tokens") {
  const Folder f;
  const std::string fixtures = "tests/fixtures/tokenizers/";
  std::string ids;
  for (int i = 0; i < 300; ++i) ids += {static_cast<char>(i * i % 20), '\0'};
  write_text(f / "ids", ids);
  const std::string train =
      "train +small --data @ids --token-vocab 730 --tied --form layer_norm --affine --steps 1 -q --checkpoint ";
  f.succeeds(train + "@model");
  for (const auto& [name, pattern] : {std::pair("gpt2", "gpt-2"),
                                      {"gpt2_pair", "gpt-2"},
                                      {"gpt_neox", "gpt-2"},
                                      {"starcoder", "starcoder"},
                                      {"llama3", "llama-bpe"}}) {
    INFO(name);
    f.succeeds(text("export @model @out.gguf --family gpt2 --like ", fixtures, name));
    const Gguf g = gguf_of(f / "out.gguf");
    const auto key = [&](const std::string& k) { return g.keys.at("tokenizer.ggml." + k); };
    CHECK(key("model") == "gpt2");
    CHECK(key("pre") == pattern);
    const auto tokens = key("tokens").get<std::vector<std::string>>();
    const auto types = key("token_type").get<std::vector<int>>();
    REQUIRE(tokens.size() == 730);
    REQUIRE(types.size() == 730);
    const tokenizers::Tokenizer tokenizer(fixtures + name);
    for (int64_t id = 0; id < 730; ++id) {
      INFO(id << ' ' << tokens[static_cast<size_t>(id)]);
      const bool known = id < tokenizer.vocab();
      CHECK((types[static_cast<size_t>(id)] == 5) == !known);
      if (!known) CHECK(tokens[static_cast<size_t>(id)] == text("[PAD", id, ']'));
      if (id >= 700 && known) CHECK(tokens[static_cast<size_t>(id)] == tokenizer.bytes_of(id));
    }
    CHECK(types[0] == 1);
    CHECK(types[700] == 3);
    if (name == std::string("gpt_neox")) CHECK(types[701] == 4);  // white space, no special token
    CHECK(key("merges").size() > 100);
  }
  const nlohmann::json source = nlohmann::json::parse(test::read_text(fixtures + "gpt2/tokenizer.json"));
  f.succeeds("export @model @out.gguf --like " + fixtures + "gpt2");
  Gguf g = gguf_of(f / "out.gguf");
  for (const auto& [token, id] : source["model"]["vocab"].items())
    CHECK(g.keys["tokenizer.ggml.tokens"][id.get<size_t>()] == token);
  CHECK(g.keys["tokenizer.ggml.merges"].size() == source["model"]["merges"].size());
  CHECK_FALSE(g.keys.contains("tokenizer.ggml.bos_token_id"));

  // One that the model has, without a folder like it.
  f.succeeds(train + "@with --tokenizer " + fixtures + "gpt2");
  f.succeeds("export @with @with.gguf");
  const Gguf with = gguf_of(f / "with.gguf");
  for (const char* key : {"tokens", "token_type", "merges", "pre", "model"})
    CHECK(with.keys.at(text("tokenizer.ggml.", key)) == g.keys.at(text("tokenizer.ggml.", key)));
  f.succeeds("export @with @folder");
  CHECK(read(f / "folder/tokenizer.json") == test::read_text(fixtures + "gpt2/tokenizer.json"));
  f.succeeds("export @model @none");
  CHECK_FALSE(std::filesystem::exists(f / "none/tokenizer.json"));

  std::filesystem::copy(fixtures + "gpt2", f / "own");
  write_text(f / "own/config.json", R"({"bos_token_id": 700, "eos_token_id": 1000000})");
  f.succeeds("export @model @out.gguf --like @own");
  g = gguf_of(f / "out.gguf");
  CHECK(g.keys["tokenizer.ggml.bos_token_id"] == 700);
  CHECK_FALSE(g.keys.contains("tokenizer.ggml.eos_token_id"));  // no id of the model
  nlohmann::json other = source;
  other["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "x"}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  write_text(f / "own/tokenizer.json", other.dump());
  f.refuses("export @model @out.gguf --like @own", 3,
            "own: the tokenizer splits a text by 'x', for which no name in llama.cpp is known");
  f.succeeds(train + "@odd --tokenizer @own");
  CHECK(
      contains(f.succeeds("export @odd @odd.gguf").err, "isonorm export: without the tokenizer: the tokenizer splits"));
  CHECK(gguf_of(f / "odd.gguf").keys.at("tokenizer.ggml.model") == "no_vocab");
  other = source, other["model"]["ignore_merges"] = true;
  write_text(f / "own/tokenizer.json", other.dump());
  f.refuses("export @model @out.gguf --like @own", 3,
            "(ignore_merges), which llama.cpp does only with LLaMA 3's pattern");
  f.succeeds("import " + folder_of("gpt2") + " @small");
  f.refuses("export @small @out.gguf --like " + fixtures + "gpt2", 3, "the model has 20 ids");
}

TEST_CASE("gguf: what llama.cpp does not compute is refused in a line") {
  const Folder f;
  f.succeeds("import " + folder_of("gpt2") + " @model");
  f.succeeds("convert @model @rms --to rms_norm -q");
  f.succeeds("import " + folder_of("vit") + " @vit");
  f.refuses("export @rms @o.gguf", 3, "rms: no family of GGUF files has this model: llama: ");
  f.refuses("export @rms @o.gguf --family gpt2", 3, "gpt2: form is uncentred_rms_norm, not layer_norm");
  f.refuses("export @vit @o.gguf", 3, "vit: no family of GGUF files has this model: none is of kind vit");
  f.refuses("export @model @o.gguf --family bert", 3, "none is of type bert");
  f.refuses("export @model @o.gguf --dtype f64", 2, "--dtype f64: a GGUF file has f32, f16 or bf16");
  f.refuses("export @model @o.gguf --max-shard-size 1KB", 2, "--max-shard-size is not for a GGUF file");
  f.refuses("export @model @o.gguf --like @none", 2, "none");
  CHECK_FALSE(std::filesystem::exists(f / "o.gguf"));
}

TEST_CASE("gguf and onnx: a number that the type of the file does not hold is refused with both values") {
  const Folder f;
  f.succeeds("import tests/fixtures/ports/llama @llama");
  const auto forged = [&](const std::string& key, const std::string& value) {
    training::OpenModelFile file = training::open_model_file(f / "llama");
    TensorMap state;
    for (const auto& [name, tensor] : file.state.outline) state.add(name, file.state.read(name));
    file.description.at("model." + key) = value;
    save_safetensors(f / "forged", state, file.description);
    return "export @forged @out";
  };
  for (const auto& [key, value, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"context", "4294967304", "key 'llama.context_length' is 4294967304, expected 0 to 4294967295"},
           {"rotary_base", "1e39", "key 'llama.rope.freq_base' is 1e+39, which is inf in f32"},
           {"eps", "1e-46", "key 'llama.attention.layer_norm_rms_epsilon' is 1e-46, which is 0 in f32"}}) {
    f.refuses(forged(key, value) + std::string(".gguf"), 3, "gguf: " + says);
    CHECK_FALSE(std::filesystem::exists(f / "out.gguf"));
  }
  f.refuses(forged("eps", "1e-46") + std::string(".onnx"), 3, "onnx: a constant is 1e-46, which is 0 in f32");
  f.succeeds(forged("eps", "1e-46") + std::string(".onnx --dtype f64"));
  // The largest that fit.
  f.succeeds(forged("context", "4294967295") + std::string(".gguf"));
  CHECK(gguf_of(f / "out.gguf").keys.at("llama.context_length") == 4294967295);
  f.succeeds(forged("eps", "1e-45") + std::string(".gguf"));
  CHECK(gguf_of(f / "out.gguf").keys.at("llama.attention.layer_norm_rms_epsilon") == 0x1p-149f);
}
