// Folders of the hub's families, tiny, with what PyTorch computes (tests/fixtures/families.py).
#include <filesystem>
#include <set>

#include "exchange/hub/folder.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const fs::path kFamilies = "tests/fixtures/families";

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const fs::directory_entry& e : fs::directory_iterator(kFamilies))
    if (e.is_directory()) names.push_back(e.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("families: each folder converts, and what its program computed agrees; another eps is found") {
  const Folder f;
  REQUIRE(families().size() >= 38);
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
    CHECK_THAT(f.succeeds("verify -q " + folder + " @" + name).out, Contains(name + ": rms_norm, verified."));
    CHECK(read(f / name + "/isonorm_torch.py") == read("exchange/hub/isonorm_torch.py"));
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

TEST_CASE("families: with --fold none the names are the source's and the head's; verify reads both") {
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
  f.succeeds("convert " + folder + " @parents/of/out --to rms_norm -q");  // with its parents
  CHECK(read(f / "parents/of/out/config.json") == read(f / "next/config.json"));
  f.refuses("convert " + folder + " @next/config.json/out --to rms_norm", 4, "next/config.json is not a folder");
  f.refuses("convert @out @again --to crms_norm", 3, "it was converted already");
  f.refuses("convert " + folder + " @out --to rms_norm", 3, "it is there already");
  f.refuses("convert " + folder + " @none --to rms_norm --max-shard-size 5.5.5GB", 2, "is not a size");
  f.refuses("convert " + folder + " @none --to rms_norm --max-shard-size 0.5", 2,
            "\"0.5\" is not a size from 1 byte to below 2^63");
  f.refuses("convert " + folder + " @crms --to crms_norm --fold none", 3, "is to keep its gain of 12 entries");
  CHECK_FALSE(fs::exists(f / "crms"));
}

TEST_CASE("families: verify takes folders by their own description") {
  const Folder f;
  const std::string folder = (kFamilies / "gpt2").string();
  f.succeeds("convert " + folder + " @rms --to rms_norm -q");
  f.succeeds("convert " + folder + " @crms --to crms_norm -q --max-shard-size 4KB");
  f.succeeds("convert " + folder + " @kept --to rms_norm --fold none -q");
  for (const std::string& pair : {folder + " @crms", folder + " @kept", std::string("@crms @rms"),
                                  folder + " " + folder, folder + " @rms/model.safetensors"})
    CHECK_THAT(f.succeeds("verify -q " + pair).out, StartsWith("equivalent: ") && Contains(", verified."));

  const nlohmann::json good = nlohmann::json::parse(read(f / "rms/config.json"));
  const auto with = [&](auto&& change) {
    nlohmann::json config = good;
    change(config);
    write_text(f / "rms/config.json", config.dump());
    return "verify " + folder + " @rms";
  };
  CHECK_THAT(f.gives(1, with([](auto& c) { c["n_head"] = 4; })).out,
             StartsWith("entries") && Contains("Their options differ: n_head '"));
  f.succeeds(with([](auto& c) { c["resid_pdrop"] = 0.5; }));
  f.refuses(with([](auto& c) { c["isonorm"]["form"] = "crms_norm"; }), 3, "as the stream of crms_norm has");
  f.refuses(with([](auto& c) { c["isonorm"]["norms"]["transformer.ln_f"]["gain"] = "w"; }), 3,
            "has a gain, and the folder has none");
  f.refuses(with([](auto& c) { c["isonorm"]["version"] = 2; }), 3, "expected version 1, form");
  f.refuses(with([](auto& c) { c["isonorm"]["rotated"] = true; }), 3, "expected version 1, form");
  f.refuses(with([](auto& c) {
              c["isonorm"]["norms"]["ln_f"] = {{"eps", 1e-5}};
            }),
            3, "config.json lists 6 norms as converted, the family has 5");
  f.refuses(with([](auto& c) { c["isonorm"]["norms"].erase("transformer.ln_f"); }), 3,
            "does not say that 'transformer.ln_f' was converted");
  f.refuses(with([](auto& c) { c.erase("isonorm"); }), 3, "has no tensor 'lm_head.bias'");
  const std::string own_code = with([](auto& c) { c["auto_map"] = {{"AutoModel", "code.Model"}}; });
  CHECK_THAT(f.gives(1, own_code).out, Contains("Their options differ: auto_map"));

  write_text(f / "rms/config.json", good.dump());
  TensorMap state = load_safetensors(f / "rms/model.safetensors");
  TensorMap changed;
  for (const auto& [name, tensor] : state) {
    Tensor copy = empty(tensor.shape(), {tensor.dtype()});
    copy_into(copy, tensor);
    if (name == "lm_head.weight") copy.mutable_data<float>()[5] *= 1.001F;
    changed.add(name, copy);
  }
  save_safetensors(f / "rms/model.safetensors", changed);
  CHECK_THAT(f.gives(1, "verify " + folder + " @rms").out, Contains("different: ") && Contains("lm_head.weight[0, 5]"));
}

TEST_CASE("families: config.json lists the parameters that the class lacks, for isonorm_torch.py") {
  const Folder f;
  struct Case {
    const char *family, *to, *norm;
    nlohmann::json says;
    std::vector<std::string> biases;
  };
  const Case cases[] = {
      {"gpt2", "crms_norm", "transformer.ln_f", {{"eps", 1e-5}}, {"lm_head.bias"}},
      {"gpt2_headless", "rms_norm", "ln_f", {{"eps", 1e-5}, {"gain", "w"}, {"bias", "b"}}, {}},
      {"vit", "crms_isometric", "vit.layernorm", {{"eps", 1e-12}}, {}},
      {"olmo", "crms_norm", "model.norm", {{"eps", 1e-5}}, {}},
      {"nemotron", "rms_norm --fold none", "model.norm", {{"eps", 1e-5}, {"gain", "1+w"}, {"bias", "b"}}, {}}};
  for (const Case& c : cases) {
    INFO(c.family);
    const ChildResult r =
        f.succeeds(text("convert ", (kFamilies / c.family).string(), " @", c.family, " -q --to ", c.to));
    const nlohmann::json said = nlohmann::json::parse(read(f / c.family + "/config.json"))["isonorm"];
    CHECK(said["version"] == 1);
    CHECK(said["form"] == std::string(c.to).substr(0, std::string(c.to).find(' ')));
    CHECK(said["width"] == 12);
    CHECK(said["norms"].size() == 5);
    CHECK(said["norms"][c.norm] == c.says);
    CHECK(said["biases"] == c.biases);
    CHECK((r.out.find("isonorm_torch.py: load(FOLDER)") != std::string::npos) == (said["fold"] == "all"));
  }
}

TEST_CASE("families: unit gains replace the norms' gains and biases") {
  const Folder f;
  for (const auto& [family, gain] : {std::pair{"phi", 1.f}, {"nemotron", 0.f}, {"clip_text_model", 1.f}}) {
    INFO(family);
    const std::string folder = (kFamilies / family).string(), weights = "/model.safetensors";
    f.succeeds(text("convert ", folder, " @", family, " --to rms_norm --unit-gains -q"));
    const TensorMap before = load_safetensors(folder + weights), after = load_safetensors(f / family + weights);
    int units = 0;
    for (const auto& [name, tensor] : before) {
      INFO(name);
      REQUIRE(after.find(name));
      CHECK(after.at(name).shape() == tensor.shape());
      if (name.find("norm") == std::string::npos || name.find("final_layer_norm") != std::string::npos) continue;
      const float expected = name.ends_with(".bias") ? 0 : gain;
      for (int i = 0; i < 12; ++i) CHECK(after.at(name).data<float>()[i] == expected);
      ++units;
    }
    CHECK(units >= 6);  // of which CLIP's last norm, which keeps its own, is none
    f.succeeds(text("verify ", folder, weights, " @", family, weights, " --spec ", folder));
  }
  const std::string gpt2 = (kFamilies / "gpt2").string();
  f.refuses("convert " + gpt2 + " @no --unit-gains --to crms_norm", 2, "a narrower stream has no stock class");
  f.refuses("convert " + gpt2 + " @no --unit-gains --to rms_norm --fold none", 2, "need --to rms_norm and --fold all");
  f.refuses("convert " + gpt2 + "/model.safetensors @no --unit-gains --to rms_norm", 2, "need IN to be a folder");
}

TEST_CASE("families: an OLMo is written as the LLaMA that it is, and nothing else is") {
  const Folder f;
  const std::string olmo = (kFamilies / "olmo").string(), as = " @out --to rms_norm -q --as llama";
  f.succeeds("convert " + olmo + as);
  nlohmann::json config = nlohmann::json::parse(read(f / "out/config.json"));
  CHECK(config["model_type"] == "llama");
  CHECK(config["architectures"] == nlohmann::json{"LlamaForCausalLM"});
  CHECK(config["rms_norm_eps"] == 1e-5);
  CHECK(config["mlp_bias"] == false);
  CHECK_FALSE(config.contains("clip_qkv"));
  std::set<std::string> names = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}, found;
  for (const char* layer : {"0", "1"})
    for (const char* part :
         {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      names.insert(text("model.layers.", layer, ".", part, ".weight"));
  for (const auto& [name, tensor] : load_safetensors(f / "out/model.safetensors")) {
    found.insert(name);
    if (name.find("norm") == std::string::npos) continue;
    for (int i = 0; i < 12; ++i) CHECK(tensor.data<float>()[i] == 1);
  }
  CHECK(found == names);

  f.refuses("convert " + changed(f, kFamilies / "olmo", "clip_qkv", 8.0) + " @no --to rms_norm --as llama", 3,
            "\"clip_qkv\" is 8.0");
  f.refuses(
      "convert " + changed(f, kFamilies / "olmo", "auto_map", {{"AutoModel", "x.Y"}}) + " @no --to rms_norm --as llama",
      3, "code of its own");
  f.refuses("convert " + (kFamilies / "gpt2").string() + " @no --to rms_norm --as llama", 3,
            "only olmo becomes a LLaMA");
  f.refuses("convert " + olmo + " @no --to crms_norm --as llama", 2, "need --to rms_norm");
  // Where config.json is silent, OLMo's defaults hold.
  const std::string silent = changed(f, kFamilies / "olmo", "clip_qkv", nullptr);
  config = nlohmann::json::parse(read(silent + "/config.json"));
  config.erase("eos_token_id"), config.erase("bos_token_id");
  write_text(silent + "/config.json", config.dump());
  f.succeeds("convert " + silent + " @silent --to rms_norm -q --as llama");
  config = nlohmann::json::parse(read(f / "silent/config.json"));
  CHECK(config["eos_token_id"] == 50279);
  CHECK(config["bos_token_id"].is_null());
}

TEST_CASE("families: shards are written with an index and read by it; an index that lies is refused") {
  const Folder f;
  const std::string folder = (kFamilies / "opt").string(), index = f / "out/model.safetensors.index.json";
  f.succeeds("convert " + folder + " @whole --to rms_norm -q");
  f.succeeds("convert " + folder + " @out --to rms_norm -q --max-shard-size 4.5KB");
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
  refused("none", first, "tensors in this file");
  refused(name, "../x.safetensors", "expected a file of this folder that ends with .safetensors");
  refused(name, "/etc/passwd", "expected a file of this folder that ends with .safetensors");
  refused(name, 3, "expected the name of a file");
  write_text(index, "{\"weight_map\": []}");
  CHECK_THROWS_WITH(hub::open_folder(f / "out"), Contains("\"weight_map\""));
  write_text(index, good.dump());
  fs::remove(f / ("out/" + second));
  CHECK_THROWS_WITH(hub::open_folder(f / "out"), Contains(second));
}

TEST_CASE("families: a folder in F16 gives one in F16, rotated too, with its dtype in config.json") {
  const Folder f;
  const std::string gpt2 = (kFamilies / "gpt2").string(), half = f / "half";
  fs::copy(gpt2, half);
  const hub::Folder source = hub::open_folder(gpt2);
  const io::FileContent content = io::content_of(io::in_format(source.state, format_named("f16")));
  save_safetensors(half + "/model.safetensors", content.entries, {}, content.read);
  const auto is_half = [&](const std::string& name) {
    const hub::Folder folder = hub::open_folder(f / name);
    return folder.state.half.size() == folder.state.outline.size() && folder.config.word("dtype") == "float16";
  };
  for (const std::string form : {"rms_norm", "crms_norm", "crms_isometric"}) {
    INFO(form);
    f.succeeds("convert @half @" + form + " -q --to " + form);
    CHECK(is_half(form));
    CHECK_THAT(f.succeeds("verify @half @" + form).out, Contains("eps of f16"));
    f.succeeds("convert " + gpt2 + " @narrow" + form + " -q --dtype f16 --to " + form);
    CHECK(is_half("narrow" + form));
    f.succeeds("verify -q " + gpt2 + " @narrow" + form);
    f.succeeds("convert @half @wide" + form + " -q --dtype f32 --to " + form);
    CHECK(hub::open_folder(f / ("wide" + form)).state.half.empty());
    f.succeeds("verify -q @half @wide" + form);
  }
  f.succeeds("convert @half @unit -q --to rms_norm --unit-gains");
  CHECK(is_half("unit"));
  f.succeeds("verify -q @half @unit");
  f.succeeds("rotate @rms_norm @turned -q --basis haar:1");
  CHECK(is_half("turned"));
  f.succeeds("import @half @ours --dtype f16"), f.succeeds("export @ours @export --dtype f16 --like @half");
  CHECK(is_half("export"));
}

TEST_CASE("families: pytorch_model.bin is read as the same model in safetensors is") {
  const Folder f;
  const std::string gpt2 = (kFamilies / "gpt2").string(), bin = gpt2 + "_bin";
  const hub::Folder folder = hub::open_folder(bin), same = hub::open_folder(gpt2);
  REQUIRE(folder.names().size() == same.names().size() + 5);  // the tied head and two masks a block are there, too
  for (const std::string& name : same.names()) CHECK(same_bytes(folder.state.read(name), same.state.read(name)));
  f.succeeds("convert " + bin + " @out --to crms_norm -q --reference " + gpt2 + ".rows");
  for (const fs::directory_entry& e : fs::directory_iterator(f / "out")) CHECK(e.path().extension() != ".bin");
  CHECK_THAT(f.succeeds("hooks " + bin).out, Contains("transformer.h.*.attn.c_attn"));
  fs::copy(bin, f / "bad");
  write_text(f / "bad/pytorch_model-00002-of-00002.bin", std::string("\x80\2cos\nsystem\n(X\4\0\0\0truetR.", 26));
  f.refuses("convert @bad @none --to rms_norm", 3, "pytorch_model-00002-of-00002.bin: this is a bare pickle");
}
