// Folders of the hub's families, tiny, with what PyTorch computes (tests/fixtures/families.py).
#include <cmath>
#include <filesystem>
#include <fstream>

#include "hub/folder.h"
#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/tools/child.h"
#include "tests/tools/small_run.h"

using namespace isonorm;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const fs::path kFamilies = "tests/fixtures/families";

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const fs::directory_entry& e : fs::directory_iterator(kFamilies))
    if (e.is_directory()) names.push_back(e.path().filename().string());
  return names;
}

// A copy of a family's folder, with another value in its config.json.
std::string changed(const Folder& f, const std::string& family, const std::string& key, const nlohmann::json& value) {
  const std::string copy = f / "copy";
  fs::remove_all(copy);
  fs::copy(kFamilies / family, copy);
  nlohmann::json config = nlohmann::json::parse(read(copy + "/config.json"));
  config[key] = value;
  write_text(copy + "/config.json", config.dump());
  return copy;
}

}  // namespace

TEST_CASE("families: each folder converts, and what its program computed agrees; another eps is found") {
  const Folder f;
  REQUIRE(families().size() >= 31);
  for (const std::string& name : families()) {
    INFO(name);
    const std::string folder = (kFamilies / name).string(), rows = folder + ".rows";
    const std::string reference = fs::exists(rows) ? " --reference " + rows : "";
    const std::string out = f.succeeds("convert " + folder + " @" + name + " --to rms_norm -q" + reference).out;
    INFO(out);
    CHECK_THAT(out, Contains("verified."));
    if (fs::exists(rows)) CHECK_THAT(out, Contains(" writers agree"));
    const nlohmann::json config = nlohmann::json::parse(read(f / name + "/config.json"));
    CHECK(config["isonorm"]["form"] == "rms_norm");
    CHECK(config["tie_word_embeddings"] == false);
    nlohmann::json spec = nlohmann::json::parse(f.succeeds("spec " + folder).out);
    CHECK((out.find("recentred once at '") != out.npos) == (spec.dump().find("recentre") != std::string::npos));
    CHECK(config["isonorm"].contains("recentred") == (spec.dump().find("recentre") != std::string::npos));
    if (!fs::exists(rows)) continue;
    const auto change_eps = [](nlohmann::json& stream) {
      for (auto& norm : stream["norms"]) (norm.is_object() ? norm["eps"] : norm) = 1e-3;
    };
    if (!spec.contains("streams")) change_eps(spec);
    for (auto& stream : spec["streams"]) change_eps(stream);
    if (spec["streams"].is_null()) spec.erase("streams");
    write_text(f / "wrong", spec.dump());
    const ChildResult wrong = f.gives(1, "convert " + folder + " @none --to rms_norm -q --spec @wrong" + reference);
    CHECK_THAT(wrong.out, Contains("Not verified: "));
    CHECK_FALSE(fs::exists(f / "none"));
  }
}

TEST_CASE("families: how a stream begins is found to be described wrongly") {
  const Folder f;
  const auto convert = [&](const std::string& family, const nlohmann::json& spec) {
    write_text(f / "spec", spec.dump());
    const std::string folder = (kFamilies / family).string();
    return f.run("convert " + folder + " @out --to rms_norm -q --spec @spec --reference " + folder + ".rows");
  };
  const auto described = [&](const std::string& family) {
    return nlohmann::json::parse(f.succeeds("spec " + (kFamilies / family).string()).out);
  };
  const auto wrong = [&](const std::string& family, const nlohmann::json& spec, const std::string& says) {
    INFO(family);
    const ChildResult r = convert(family, spec);
    INFO(r.out << r.err);
    CHECK(r.code == 1);
    CHECK_THAT(r.out, Contains("Not verified: ") && Contains(says));
    CHECK_FALSE(fs::exists(f / "out"));
  };
  nlohmann::json bloom = described("bloom");
  const std::string table = "transformer.word_embeddings.weight", norm = "transformer.word_embeddings_layernorm";
  CHECK(bloom["writers"][table]["norm"] == norm);
  bloom["writers"][table]["norm"] = "transformer.other";
  bloom["norms"]["transformer.other"] = "1e-5";
  bloom["norms"].erase(norm);
  bloom["not_on_stream"] = {norm};
  wrong("bloom", bloom, "is off by");  // a norm without gain and bias
  bloom["writers"][table] = 1;
  bloom["norms"].erase("transformer.other");
  wrong("bloom", bloom, "is off by");
  for (const char* family : {"clip_vision_model", "wav2vec2"}) {
    nlohmann::json bare = described(family);
    bare.erase("recentre");
    wrong(family, bare, "reads are not the sum of what writers wrote");
  }
  nlohmann::json whisper = described("whisper");
  whisper["streams"]["encoder"].erase("recentre");
  wrong("whisper", whisper, "reads are not the sum of what writers wrote");

  const std::string out =
      f.succeeds("convert " + (kFamilies / "bloom").string() + " @bloom --to rms_norm --fold none -q").out;
  CHECK_THAT(out, Contains("'" + norm + "' is in the rows of its table now"));
  const nlohmann::json said = nlohmann::json::parse(read(f / "bloom/config.json"))["isonorm"];
  CHECK(said["identity"] == nlohmann::json::array({norm}));
  CHECK_THAT(said["norms"].dump(), !Contains("word_embeddings"));
  CHECK(load_safetensors(f / "bloom/model.safetensors").find(norm + ".weight") == nullptr);
  for (const auto& [form, says] : {std::pair("rms_norm", "x minus its mean"),
                                   {"crms_norm", "the first d - 1 entries"},
                                   {"crms_isometric", "Helmert"}}) {
    const std::string to = text(form);
    CHECK_THAT(f.succeeds("convert " + (kFamilies / "clip").string() + " @clip_" + to + " -q --to " + to).out,
               Contains("recentred once at 'vision_model.encoder.layers.0'") && Contains(says));
    f.succeeds("verify " + (kFamilies / "clip/model.safetensors").string() + " @clip_" + to +
               "/model.safetensors --spec " + (kFamilies / "clip").string());
  }
}

TEST_CASE("families: with --fold none the names are those of the source and the head's; verify reads both") {
  const Folder f;
  const std::string folder = (kFamilies / "gpt2").string(), weights = "/model.safetensors";
  f.succeeds("convert " + folder + " @out --to rms_norm --fold none -q");
  const TensorMap before = load_safetensors(folder + weights), after = load_safetensors(f / "out" + weights);
  CHECK(after.size() == before.size() + 1);
  for (const auto& [name, tensor] : before) CHECK(after.at(name).shape() == tensor.shape());
  CHECK(same_bytes(after.at("lm_head.weight"), before.at("transformer.wte.weight")));
  f.succeeds("verify " + folder + weights + " @out" + weights + " --spec " + folder);
  write_text(f / "next.unfinished", "somebody's");
  f.succeeds("convert " + folder + " @next/ --to rms_norm -q");
  CHECK(read(f / "next.unfinished") == "somebody's");
  CHECK(fs::exists(f / "next/config.json"));
  f.refuses("convert " + folder + " @none/out --to rms_norm", 4, "there is no folder");
  f.refuses("convert @out @again --to crms_norm", 3, "it was converted already");
  f.refuses("convert " + folder + " @out --to rms_norm", 3, "it is there already");
  f.refuses("convert " + folder + " @crms --to crms_norm --fold none", 3, "is to keep its gain of 12 entries");
  CHECK_FALSE(fs::exists(f / "crms"));
}

TEST_CASE("families: shards are written with an index and read by it; an index that lies is refused") {
  const Folder f;
  const std::string folder = (kFamilies / "opt").string(), index = f / "out/model.safetensors.index.json";
  f.succeeds("convert " + folder + " @whole --to rms_norm -q");
  f.succeeds("convert " + folder + " @out --to rms_norm -q --max-shard-size 4KB");
  const TensorMap whole = load_safetensors(f / "whole/model.safetensors");
  const nlohmann::json good = nlohmann::json::parse(read(index));
  CHECK(good["weight_map"].size() == whole.size());
  const hub::Folder read_again = hub::open_folder(f / "out");
  CHECK(read_again.state.outline.size() == whole.size());
  for (const auto& [name, tensor] : whole) CHECK(same_bytes(read_again.state.read(name), tensor));
  CHECK(fs::file_size(f / "out/model-00001-of-00003.safetensors") < 6000);

  const std::string first = "model-00001-of-00003.safetensors", second = "model-00002-of-00003.safetensors";
  const auto refused = [&](const std::string& name, const nlohmann::json& file, const std::string& says) {
    nlohmann::json bad = good;
    bad["weight_map"][name] = file;
    write_text(index, bad.dump());
    INFO(says);
    CHECK_THROWS_WITH(hub::open_folder(f / "out"), Contains(says));
  };
  const std::string name = good["weight_map"].begin().key(), there = good["weight_map"][name];
  refused(name, there == first ? second : first, "the index");
  refused("none", first, "tensors are in this file");
  refused(name, "../x.safetensors", "expected a safetensors file of this folder");
  refused(name, "/etc/passwd", "expected a safetensors file of this folder");
  refused(name, 3, "expected the name of a file");
  write_text(index, "{\"weight_map\": []}");
  CHECK_THROWS_WITH(hub::open_folder(f / "out"), Contains("\"weight_map\""));
  write_text(index, good.dump());
  fs::remove(f / ("out/" + second));
  CHECK_THROWS_WITH(hub::open_folder(f / "out"), Contains(second));
}

TEST_CASE("families: every number of F16 is read as it is") {
  const Folder f;
  fs::copy(kFamilies / "gpt2", f / "half");
  Tensor bits = empty({1 << 16, 2}, {DType::u8});
  for (int i = 0; i < 1 << 16; ++i)
    for (int byte = 0; byte < 2; ++byte)
      bits.mutable_data<uint8_t>()[2 * i + byte] = static_cast<uint8_t>(i >> 8 * byte);
  const io::TensorEntry entry{"x", DType::u8, bits.shape(), 0, 0, "F16"};
  save_safetensors(f / "half/model.safetensors", {entry}, {}, [&](const std::string&) { return bits; });
  const Tensor x = hub::open_folder(f / "half").state.read("x");
  REQUIRE(x.shape() == Dims{1 << 16});
  for (int i = 0; i < 1 << 16; ++i) {
    const int exponent = i >> 10 & 31, fraction = i & 1023;
    const double size = exponent == 0    ? std::ldexp(fraction, -24)
                        : exponent != 31 ? std::ldexp(1024 + fraction, exponent - 25)
                                         : (fraction ? NAN : INFINITY);
    const double expected = i >> 15 ? -size : size, found = x.data<float>()[i];
    const bool right =
        std::isnan(expected) ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
    if (!right) FAIL(i << ": " << found << ", expected " << expected);
  }
}

TEST_CASE("families: what config.json says is refused where there is no exact form or no row, with the reason") {
  const Folder f;
  struct Case {
    const char *family, *key;
    nlohmann::json value;
    const char* says;
  };
  const Case cases[] = {
      {"gpt2", "model_type", "bert", "Post-LN"},
      {"gpt2", "model_type", "llama", "RMSNorm already"},
      {"bloom", "apply_residual_connection_post_layernorm", true, "its norms stand on the residual stream"},
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
      {"gptj", "tie_word_embeddings", true, "the numbers of the two are not the same"},
      {"opt", "do_layer_norm_before", false, "Post-LN"},
      {"falcon", "parallel_attn", false, "has a gain, and here is none"},
      {"stablelm", "use_parallel_residual", true, "is unexpected: what it is to the stream"}};
  for (const Case& c : cases) {
    INFO(c.family << ' ' << c.key << ' ' << c.value);
    const ChildResult r = f.run("convert " + changed(f, c.family, c.key, c.value) + " @out --to rms_norm -q");
    INFO(r.out << r.err);
    CHECK(r.code == 3);
    CHECK_THAT(r.err, Contains(c.says));
    CHECK_FALSE(fs::exists(f / "out"));
  }
  // Old files do not say that the head is the table.
  for (const char* family : {"gpt2", "gpt_bigcode", "starcoder2", "opt", "falcon", "mpt", "cohere"}) {
    INFO(family);
    const std::string silent = changed(f, family, "tie_word_embeddings", true) + "/config.json";
    nlohmann::json config = nlohmann::json::parse(read(silent));
    config.erase("tie_word_embeddings");
    write_text(silent, config.dump());
    f.succeeds("convert @copy @silent --to rms_norm -q");
    fs::remove_all(f / "silent");
  }
  const std::string own = changed(f, "mpt", "auto_map", {{"AutoModel", "modeling.Model"}});
  CHECK_THAT(f.succeeds("convert " + own + " @own --to rms_norm -q").out,
             Contains("code of its own (auto_map), which is unchecked") && !Contains("verified"));
  write_text(own + "/adapter_config.json", "{}");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "an adapter is added to the weights");
  fs::remove(own + "/adapter_config.json");
  fs::remove(own + "/model.safetensors");
  write_text(own + "/pytorch_model.bin", "x");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "a pickle, which may run any program");
  fs::remove(own + "/config.json");
  f.refuses("convert " + own + " @none --to rms_norm", 3, "there is no config.json");
}

TEST_CASE("families: a tensor that the program would miss, or pass over, is refused") {
  const Folder f;
  const auto refused = [&](const std::string& family, const std::string& name, const Tensor& value,
                           const std::string& says) {
    const std::string folder = changed(f, family, "transformers_version", "5"), file = folder + "/model.safetensors";
    TensorMap tensors;
    for (const auto& [n, t] : load_safetensors(file))
      if (n != name) tensors.add(n, t);
    if (value.defined()) tensors.add(name, value);
    save_safetensors(file, tensors);
    INFO(family << ' ' << name);
    const ChildResult r = f.gives(3, "convert " + folder + " @out --to rms_norm -q");
    CHECK_THAT(r.err, Contains(says));
  };
  const Tensor width = empty({12}), vocabulary = empty({20});
  refused("gpt2", "transformer.h.1.mlp.c_proj.weight", {}, "'transformer.h.*.mlp.c_proj.weight' is there 1 times");
  refused("gpt2", "transformer.wpe.weight", {}, "there is no tensor 'transformer.wpe.weight'");
  refused("gpt2", "lm_head.bias", vocabulary, "the program has no place for 'lm_head.bias'");
  refused("olmo", "model.norm.weight", width, "has no gain, and here is one");
  refused("olmo", "model.norm.bias", width, "the program has no place for 'model.norm.bias'");
  refused("mpt", "transformer.norm_f.bias", width, "the program has no place for 'transformer.norm_f.bias'");
  refused("cohere", "model.norm.bias", width, "the program has no place for 'model.norm.bias'");
  refused("gptj", "lm_head.weight", {}, "\"tie_word_embeddings\" is false");
}
