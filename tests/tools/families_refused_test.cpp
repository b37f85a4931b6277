// Folders of the hub that are refused, or copies that cannot be made, each in a line.
#include <unistd.h>

#include <filesystem>

#include "exchange/hub/folder.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const fs::path kFamilies = "tests/fixtures/families";

}  // namespace

TEST_CASE("families: what cannot be copied is refused before the work") {
  const Folder f;
  fs::copy(kFamilies / "gpt2", f / "in");
  fs::create_symlink("../../blobs/none", f / "in/tokenizer.json");  // of a snapshot that was loaded in part
  f.refuses("convert @in @out --to rms_norm", 4, "in/tokenizer.json: cannot open");
  fs::remove(f / "in/tokenizer.json");
  write_text(f / "in/vocab.json", "{}");
  fs::permissions(f.path, fs::perms::all), fs::permissions(f / "in/vocab.json", fs::perms::none);
  const uid_t user = geteuid();
  REQUIRE(seteuid(user == 0 ? 65534 : user) == 0);  // root may read anything
  CHECK_THROWS_WITH(hub::check_new_folder(f / "out", f / "in"), Contains("in/vocab.json: cannot open"));
  REQUIRE(seteuid(user) == 0);
}

TEST_CASE("config.json: every second name of a key counts as the key and must not contradict it") {
  using Names = std::vector<std::pair<std::string, std::string>>;
  const Names gpt2 = {{"hidden_size", "n_embd"},
                      {"max_position_embeddings", "n_positions"},
                      {"num_attention_heads", "n_head"},
                      {"num_hidden_layers", "n_layer"}};
  // CONFIG_MAPPING[type].attribute_map as transformers 5.24 prints it, and "n_embed" from its falcon and bloom
  // configurations.
  const std::pair<const char*, Names> printed[] = {
      {"gpt2", gpt2},
      {"gpt_bigcode", gpt2},
      {"gptj", gpt2},
      {"codegen", gpt2},
      {"bloom", {{"num_hidden_layers", "n_layer"}, {"num_attention_heads", "n_head"}, {"n_embed", "hidden_size"}}},
      {"falcon", {{"n_embed", "hidden_size"}}},
      {"mpt", {{"num_attention_heads", "n_heads"}, {"hidden_size", "d_model"}, {"num_hidden_layers", "n_layers"}}},
      {"whisper",
       {{"num_key_value_heads", "encoder_attention_heads"},
        {"num_attention_heads", "encoder_attention_heads"},
        {"hidden_size", "d_model"},
        {"num_hidden_layers", "encoder_layers"}}},
      {"llama", {{"hidden_size", "hidden_size"}}}};  // no second names
  for (const auto& [type, names] : printed)
    for (const auto& [alias, name] : names) {
      INFO(type << ' ' << alias);
      const auto config = [&](const nlohmann::json& more) {
        nlohmann::json all{{"model_type", type}};
        all.update(more);
        return hub::Config(all.dump());
      };
      CHECK(config({{alias, 7}}).integer(name) == 7);
      CHECK(config({{alias, 7}, {name, 7}}).integer(name) == 7);
      if (alias == name) continue;
      CHECK(config({{alias, nullptr}, {name, 8}}).integer(name) == 8);
      CHECK(config({{alias, 7}, {name, nullptr}}).integer(name) == 7);
      CHECK_THROWS_WITH(config({{alias, 7}, {name, 8}}), "config.json: \"" + alias + "\" is '7' and \"" + name +
                                                             "\" is '8', two names for the same value");
    }
  CHECK(hub::Config(R"({"model_type": "llama", "n_embd": 3, "hidden_size": 4})").integer("n_embd") == 3);
}

TEST_CASE("families: a model of GPT-2 is converted by either name of its depth but not by two that differ") {
  const Folder f;
  const auto converted = [&](const char* out, auto&& change) {
    fs::copy(kFamilies / "gpt2", f / out);
    nlohmann::json config = f.json(std::string(out) + "/config.json");
    change(config);
    write_text(f / (std::string(out) + "/config.json"), config.dump());
    return std::string("convert @") + out + " @" + out + "-rms --to rms_norm";
  };
  f.succeeds(converted("alias", [](auto& c) { c["num_hidden_layers"] = c["n_layer"], c.erase("n_layer"); }));
  f.refuses(converted("both", [](auto& c) { c["num_hidden_layers"] = 1; }), 3,
            "\"num_hidden_layers\" is '1' and \"n_layer\" is '2', two names for the same value");
}

TEST_CASE("families: a config.json without an exact form or a row is refused with the reason") {
  const Folder f;
  struct Case {
    const char *family, *key;
    nlohmann::json value;
    const char* says;
  };
  const Case cases[] = {
      {"gpt2", "model_type", "bert", "Post-LN"},
      {"gpt2", "model_type", "llama", "RMSNorm already"},
      {"bloom", "apply_residual_connection_post_layernorm", true, "its norms are on the residual stream"},
      {"wav2vec2", "do_stable_layer_norm", false, "Post-LN"},
      {"wav2vec2", "do_stable_layer_norm", nullptr, "\"do_stable_layer_norm\" is "},
      {"clip", "vision_config", 3, "\"vision_config\" is 3, expected an object"},
      {"whisper", "encoder_layers", 2, "\"encoder_layers\" is 2"},
      {"clip_vision_model", "architectures", {"CLIPVisionModel"}, "the architecture is 'CLIPVisionModel'"},
      {"gpt2", "model_type", "nothing", "known are gpt2, "},
      {"gpt2", "model_type", 3, "expected a word"},
      {"gpt2", "architectures", {"GPT2DoubleHeadsModel"}, "the architecture is 'GPT2DoubleHeadsModel'"},
      {"gpt2", "n_embd", 13, "13"},
      {"gpt2", "n_embd", -1, "expected a whole number"},
      {"gpt2", "layer_norm_epsilon", "1e-5", "expected a number"},
      {"gpt2", "add_cross_attention", true, "cross-attention"},
      {"gpt2", "tie_word_embeddings", false, "there is no 'lm_head.weight'"},
      {"gptj", "tie_word_embeddings", true, "but their numbers differ"},
      {"opt", "do_layer_norm_before", false, "Post-LN"},
      {"opt", "layer_norm_elementwise_affine", false, "has no tensor 'model.decoder.final_layer_norm.bias'"},
      {"falcon", "parallel_attn", false, "has a gain, and the folder has none"},
      {"stablelm", "use_parallel_residual", true, "is unexpected: its role on the stream"}};
  for (const Case& c : cases) {
    INFO(c.family << ' ' << c.key << ' ' << c.value);
    const ChildResult r =
        f.run("convert " + changed(f, kFamilies / c.family, c.key, c.value) + " @out --to rms_norm -q");
    INFO(r.out << r.err);
    CHECK(r.code == 3);
    CHECK_THAT(r.err, Contains(c.says));
    CHECK_FALSE(fs::exists(f / "out"));
  }
  // Old files do not say that the head is the table.
  for (const char* family : {"gpt2", "gpt_bigcode", "starcoder2", "opt", "falcon", "mpt", "cohere"}) {
    INFO(family);
    const std::string silent = changed(f, kFamilies / family, "tie_word_embeddings", true) + "/config.json";
    nlohmann::json config = nlohmann::json::parse(read(silent));
    config.erase("tie_word_embeddings");
    write_text(silent, config.dump());
    f.succeeds("convert @copy @silent --to rms_norm -q");
    fs::remove_all(f / "silent");
  }
  const std::string own = changed(f, kFamilies / "mpt", "auto_map", {{"AutoModel", "modeling.Model"}});
  CHECK_THAT(f.succeeds("convert " + own + " @own --to rms_norm -q").out,
             Contains("code of its own (auto_map), which is unchecked") && !Contains("verified"));
  CHECK_THAT(f.succeeds("convert " + changed(f, kFamilies / "mpt", "auto_map", nlohmann::json::object()) +
                        " @stock --to rms_norm -q")
                 .out,
             Contains(" verified."));
  write_text(own + "/adapter_config.json", "{}");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "an adapter is added to the weights");
  fs::remove(own + "/adapter_config.json");
  fs::remove(own + "/model.safetensors");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "there are no weights, expected model.safetensors, ");
  fs::remove(own + "/config.json");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "there is no config.json");
}

TEST_CASE("families: a tensor that the program would miss, or pass over, is refused") {
  const Folder f;
  const auto converts = [&](int code, const std::string& family, const std::string& name, const Tensor& value) {
    const std::string folder = changed(f, kFamilies / family, "transformers_version", "5"),
                      file = folder + "/model.safetensors";
    TensorMap tensors;
    for (const auto& [n, t] : load_safetensors(file))
      if (n != name) tensors.add(n, t);
    if (value.defined()) tensors.add(name, value);
    save_safetensors(file, tensors);
    INFO(family << ' ' << name);
    return f.gives(code, "convert " + folder + " @out --to rms_norm -q").err;
  };
  const auto refused = [&](const std::string& family, const std::string& name, const Tensor& value,
                           const std::string& says) { CHECK_THAT(converts(3, family, name, value), Contains(says)); };
  const Tensor width = empty({12}), vocabulary = empty({20});
  refused("gpt2", "transformer.h.1.mlp.c_proj.weight", {}, "'transformer.h.*.mlp.c_proj.weight' occurs 1 times");
  refused("gpt2", "transformer.wpe.weight", {}, "there is no tensor 'transformer.wpe.weight'");
  refused("gpt2", "lm_head.bias", vocabulary, "has no tensor 'lm_head.bias'");
  refused("olmo", "model.norm.weight", width, "has no gain, and the folder has one");
  refused("olmo", "model.norm.bias", width, "has no tensor 'model.norm.bias'");
  refused("mpt", "transformer.norm_f.bias", width, "has no tensor 'transformer.norm_f.bias'");
  refused("cohere", "model.norm.bias", width, "has no tensor 'model.norm.bias'");
  refused("gptj", "lm_head.weight", {}, "\"tie_word_embeddings\" is false");
  converts(0, "dinov2", "dinov2.embeddings.mask_token", {});  // which not every model has

  // A head that is said to be the table may have another zero.
  const std::string folder = changed(f, kFamilies / "gpt2", "tie_word_embeddings", true),
                    file = folder + "/model.safetensors";
  TensorMap tensors = load_safetensors(file);
  const Tensor head = tensors.at("transformer.wte.weight").to(DType::f64).to(DType::f32);
  tensors.at("transformer.wte.weight").mutable_data<float>()[0] = 0, head.mutable_data<float>()[0] = -0.0F;
  tensors.add("lm_head.weight", head);
  save_safetensors(file, tensors);
  f.succeeds("spec " + folder);
  head.mutable_data<float>()[0] = 1e-45F;
  save_safetensors(file, tensors);
  f.refuses("spec " + folder, 3, "but their numbers differ");
}
