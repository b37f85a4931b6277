// Published models are imported and exported; the program and transformers compute the same logits
// (tests/fixtures/ports.py).
#include <filesystem>

#include "exchange/hub/folder.h"
#include "tests/tools/logits.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kPorts = "tests/fixtures/ports/";

std::string folder_of(const std::string& name) {
  return fs::exists(kPorts + name) ? kPorts + name : "tests/fixtures/families/" + name;
}

}  // namespace

TEST_CASE("port: an imported model has transformers' logits; its export has the bytes of the source") {
  const Folder f;
  // Sums of at most 48 products in two blocks; 100 roundings are more than they give.
  constexpr double kRounding = 100 * 2.3e-16;
  for (const char* name : {"gpt2", "gpt2_untied", "gpt_neox", "llama", "qwen2", "qwen3", "stablelm", "gpt_bigcode",
                           "phi", "falcon", "mpt", "olmo", "opt", "vit"}) {
    INFO(name);
    f.succeeds(text("import ", folder_of(name), " @", name));
    CHECK(off(kPorts + name + ".safetensors", f / name) < kRounding);
    if (training::open_model_file(f / name).description.at("model.form") == "layer_norm")
      f.succeeds(text("convert @", name, " @", name, "_crms --to crms_norm -q"));
    f.succeeds(text("export @", name, " @", name, "_back"));
    f.succeeds(text("export @", name, " @", name, "_like --like ", folder_of(name)));
    const hub::Folder before = hub::open_folder(folder_of(name));
    for (const char* back : {"_back", "_like"}) {
      const hub::Folder after = hub::open_folder(f / (name + std::string(back)));
      CHECK(after.state.outline.size() == before.state.outline.size());
      for (const auto& [tensor, _] : before.state.outline) {
        INFO(tensor);
        CHECK(same_bytes(after.state.read(tensor), before.state.read(tensor)));
      }
      f.succeeds(text("import @", name, back, " @again"));
      CHECK(read(f / "again") == read(f / name));
    }
    CHECK(nlohmann::json::parse(read(f / (name + std::string("_like/config.json")))) ==
          nlohmann::json::parse(read(folder_of(name) + "/config.json")));
  }
}

TEST_CASE("port: a Mistral without a window is a LLaMA, by other keys") {
  const Folder f;
  const std::string copy = changed(f, folder_of("llama"), "architectures", {"MistralForCausalLM"});
  nlohmann::json config = nlohmann::json::parse(read(copy + "/config.json"));
  config["model_type"] = "mistral", config["rope_theta"] = config["rope_parameters"]["rope_theta"];
  config.erase("rope_parameters");
  write_text(copy + "/config.json", config.dump());
  f.refuses("import " + copy + " @out", 3, "\"sliding_window\" is '4096'");  // without the key it has one
  config["sliding_window"] = nullptr;
  write_text(copy + "/config.json", config.dump());
  f.succeeds("import " + copy + " @out");
  f.succeeds("import " + folder_of("llama") + " @llama");
  CHECK(read(f / "out") == read(f / "llama"));
  f.succeeds("export @out @back --family mistral");
  f.succeeds("import @back @again");
  CHECK(read(f / "again") == read(f / "llama"));
}

TEST_CASE("port: OLMo converted to RMSNorm is a stock LLaMA") {
  const Folder f;
  f.succeeds("import " + folder_of("olmo") + " @in --dtype f64");
  f.succeeds("convert @in @rms --to rms_norm -q");
  CHECK_THAT(f.succeeds("export @rms @out").out, Contains("LlamaForCausalLM"));
  f.succeeds("import @out @llama");
  CHECK(off(kPorts + "olmo.safetensors", f / "llama") < 1e-13);
}

TEST_CASE("port: a rotated folder is refused; --like exports to the stock class alone") {
  const Folder f;
  f.succeeds("convert " + folder_of("olmo") + " @rms --to rms_norm -q");
  f.succeeds("rotate @rms @turned --basis haar:1 -q");
  f.refuses("import @turned @out", 3, "the stream is rotated ('haar:1')");
  f.succeeds("import " + folder_of("olmo") + " @in");
  f.succeeds("export @in @like --like @turned");
  CHECK_FALSE(nlohmann::json::parse(read(f / "like/config.json")).contains("isonorm"));

  // transformers takes the second name of its attribute_map, too.
  const std::string gpt2 = changed(f, folder_of("gpt2"), "num_attention_heads", 4);
  nlohmann::json second = nlohmann::json::parse(read(gpt2 + "/config.json"));
  second.erase("n_head");
  write_text(gpt2 + "/config.json", second.dump());
  f.succeeds("import " + gpt2 + " @four");
  CHECK(training::open_model_file(f / "four").description.at("model.heads") == "4");
  f.succeeds("import " + folder_of("gpt2") + " @three");
  f.succeeds("export @three @out --like " + gpt2);
  const nlohmann::json config = nlohmann::json::parse(read(f / "out/config.json"));
  CHECK(config["n_head"] == 3);
  CHECK_FALSE(config.contains("num_attention_heads"));
}

TEST_CASE("port: an imported model is trained on token ids and exported again; the file supplies omitted options") {
  const Folder f;
  std::string ids;
  for (int i = 0; i < 300; ++i) ids += {static_cast<char>(i * i % 20), '\0'};
  write_text(f / "ids", ids);
  const std::string train = "train --model gpt --data @ids --threads 1 --batch 4 -q ";
  for (const char* name : {"gpt2", "llama"}) {
    INFO(name);
    f.succeeds(text("import ", folder_of(name), " @", name));
    f.succeeds(text(train, "--steps 2 --token-vocab 20 --init @", name, " --checkpoint @", name, ".ckpt"));
    f.succeeds(text("export @", name, ".ckpt @", name, "_out --like ", folder_of(name)));
    const hub::Folder before = hub::open_folder(folder_of(name)),
                      after = hub::open_folder(f / (name + std::string("_out")));
    CHECK(after.state.outline.size() == before.state.outline.size());
    CHECK(after.config.word("dtype") == "float32");
  }
  f.succeeds(train + "--steps 3 --extend --checkpoint @gpt2.ckpt");  // the vocabulary is the checkpoint's
  f.refuses(train + "--token-vocab 21 --init @gpt2", 3, "its model.vocab is 20, not 21");
  f.refuses(train + "--token-vocab 19 --init @gpt2", 3, "its model.vocab is 20, not 19");
  f.refuses("train --token-vocab 20", 2, "--token-vocab requires --model gpt with --data");
}

TEST_CASE("port: a value without a counterpart is refused in a line that names it") {
  const Folder f;
  struct Case {
    const char *name, *key;
    nlohmann::json value;
    const char* says;
  };
  const Case cases[] = {
      {"gpt2", "model_type", "bert",
       "types that can be imported are gpt2, llama, mistral, qwen2, qwen3, olmo, stablelm, gpt_bigcode, phi, falcon, "
       "mpt, opt, gpt_neox, vit"},
      {"gpt2", "model_type", 3, "expected a word"},
      {"gpt2", "architectures", {"GPT2Model"}, "the architecture is 'GPT2Model'"},
      {"gpt2", "activation_function", "gelu_fast", "\"activation_function\" is '\"gelu_fast\"'"},
      {"gpt2", "n_embd", -12, "\"n_embd\" is '-12', expected a whole number"},
      {"gpt2", "n_embd", 12.5, "\"n_embd\" is '12.5', expected a whole number"},
      {"gpt2", "n_embd", 9'000'000'000, "\"n_embd\" is '9000000000'"},
      {"gpt2", "n_embd", 15, "the model's has"},
      {"gpt2", "n_head", 5, "heads"},
      {"gpt2", "n_layer", 3, "there is no tensor 'transformer.h.2.ln_1.weight'"},
      {"gpt2", "n_layer", 1, "'transformer.h.1.attn.c_attn.bias' has no place"},
      {"gpt2", "n_layer", 60000, "60000 blocks, the folder holds 28 tensors"},
      {"gpt2", "n_positions", 1'000'000'000'000, "parameters, the file holds"},
      {"gpt2", "vocab_size", 21, "the model's has"},
      {"gpt2", "tie_word_embeddings", false, "there is no tensor 'lm_head.weight'"},
      {"gpt2", "quantization_config", {{"bits", 4}}, "quantization_config"},
      {"gpt2", "auto_map", {{"AutoModelForCausalLM", "code.Model"}}, "code of its own"},
      {"gpt2", "num_hidden_layers", 1, "\"num_hidden_layers\" is '1' and \"n_layer\" is '2', two names for"},
      {"gpt2", "hidden_size", 15, "\"hidden_size\" is '15' and \"n_embd\" is"},
      {"llama", "rope_theta", 5000, "\"rope_parameters.rope_theta\" is '500.0' and \"rope_theta\" is '5000'"},
      {"olmo", "rope_parameters", {{"rope_theta", 1e4}, {"type", "linear"}}, "\"rope_parameters.type\" is"},
      {"gpt_neox", "rope_parameters", {{"rope_theta", 1e4}, {"type", "linear"}}, "\"rope_parameters.type\" is"},
      {"llama", "rope_scaling", {{"type", "linear"}}, "\"rope_scaling\" is"},
      {"llama", "rope_parameters", {{"rope_type", "llama3"}}, "\"rope_parameters.rope_type\" is"},
      {"llama", "num_key_value_heads", 1, "expected [6, 12]"},
      {"llama", "head_dim", 3, "head_width 3"},
      {"qwen2", "layer_types", {"full_attention", "sliding_attention"}, "\"layer_types\" has '\"sliding_attention\"'"},
      {"qwen2", "rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}, "for some blocks only"},
      {"qwen2", "per_layer_config", {{"0", {{"rms_norm_eps", 1}}}}, "\"per_layer_config\" is set"},
      {"gpt2", "transformers_weights", "other.safetensors", "\"transformers_weights\" is '\"other.safetensors\"'"},
      {"qwen2", "is_causal", false, "\"is_causal\" is 'false'"},
      {"mpt", "num_hidden_layers", 1, "\"num_hidden_layers\" is '1' and \"n_layers\" is"},
      {"qwen2", "use_sliding_window", true, "\"use_sliding_window\" is 'true'"},
      {"qwen3", "attention_bias", true, "\"attention_bias\" is 'true'"},
      {"qwen3", "head_dim", 4, "expected [16, 12]"},
      {"qwen3", "model_type", "qwen2", "the architecture is 'Qwen3ForCausalLM'"},
      {"stablelm", "qk_layernorm", true, "\"qk_layernorm\" is 'true'"},
      {"stablelm", "use_qkv_bias", false, "'model.layers.0.self_attn.k_proj.bias' has no place"},
      {"gpt_bigcode", "multi_query", false, "\"multi_query\" is 'false'"},
      {"falcon", "new_decoder_architecture", true, "\"new_decoder_architecture\" is 'true'"},
      {"falcon", "n_embed", 24, "\"n_embed\" is '24' and \"hidden_size\" is"},
      {"phi", "tie_word_embeddings", true, "\"tie_word_embeddings\" is 'true'"},
      {"phi", "rope_parameters", {{"partial_rotary_factor", 0.4}}, "head_width 8 gives 3 entries to rotate"},
      {"mpt", "attn_config", {{"alibi_bias_max", 4}}, "\"attn_config.alibi_bias_max\" is '4'"},
      {"mpt", "expansion_ratio", 2, "\"expansion_ratio\" is '2'"},
      {"olmo", "clip_qkv", 8, "\"clip_qkv\" is '8'"},
      {"opt", "do_layer_norm_before", false, "\"do_layer_norm_before\" is 'false'"},
      {"opt", "max_position_embeddings", 10, "the model's has"},
      {"gpt_neox", "num_attention_heads", 3, "heads"},
      {"gpt_neox", "rope_parameters", {{"partial_rotary_factor", 0.4}}, "head_width 8 gives 3 entries to rotate"},
      {"vit", "qkv_bias", false, "\"qkv_bias\" is 'false'"},
      {"vit", "patch_size", 3, "patch"},
      {"vit", "image_size", {8, 8}, "is '[8,8]', expected a whole number"}};
  for (const Case& c : cases) {
    INFO(c.name << ' ' << c.key << ' ' << c.value);
    const std::string copy = changed(f, folder_of(c.name), c.key, c.value);
    f.refuses("import " + copy + " @out", 3, c.says);
    CHECK_FALSE(fs::exists(f / "out"));
  }
  f.succeeds("train +small --steps 1 -q --form none --checkpoint @none");
  f.refuses("export @none @out", 3, "no family of folders has this model: gpt2: ");
  CHECK_FALSE(fs::exists(f / "out"));
}

TEST_CASE("port: a file that lacks a tensor of its model is exported to nothing") {
  const Folder f;
  f.succeeds("import " + folder_of("gpt2") + " @whole");
  Metadata metadata;
  const TensorMap whole = load_safetensors(f / "whole", &metadata);
  for (const char* missing :
       {"norm.weight", "norm.bias", "blocks.1.norm2.weight", "blocks.1.mlp.fc1.bias", "position.weight"}) {
    TensorMap less;
    for (const auto& [name, x] : whole)
      if (name != missing) less.add(name, x);
    save_safetensors(f / "less", less, metadata);
    for (const char* out : {"@out", "@out.onnx", "@out.gguf"})
      f.refuses(text("export @less ", out), 3, text("less: there is no tensor '", missing, "', which the model has"));
  }
  CHECK(f.files() == 3);  // text.txt and these
}

TEST_CASE("port: what would be lost, is of whole numbers, or reads the mean that its form takes off is refused") {
  const Folder f;
  std::filesystem::copy(folder_of("qwen2"), f / "source");
  f.refuses("import @source @source/config.json", 2, "would be lost");
  f.succeeds("import " + folder_of("gpt2_untied") + " @whole");
  Metadata metadata;
  TensorMap whole = load_safetensors(f / "whole", &metadata), odd;
  for (const auto& [name, x] : whole) odd.add(name, name == "head.weight" ? detached::to(x, DType::u8) : x);
  save_safetensors(f / "odd", odd, metadata);
  f.refuses("export @odd @out.onnx", 3, "tensor 'head.weight' is not of");
  f.succeeds("train +small --no-final-norm --steps 1 -q --checkpoint @bare");
  f.refuses("export @bare @out.onnx", 3,
            "without a last norm the head reads the mean of the stream, which rms_norm takes off");
}
