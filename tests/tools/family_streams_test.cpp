// Folders of the hub's families whose stream begins behind a norm or an activation, and of several streams.
#include <filesystem>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const fs::path kFamilies = "tests/fixtures/families";

}  // namespace

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
    for (const char* family : {"bloom", "clip", "dinov2", "whisper"}) {
      const std::string folder = (kFamilies / family).string(), out = text(family, "_folder_", to);
      f.succeeds("convert " + folder + " @" + out + " -q --to " + to);
      CHECK_THAT(f.succeeds("verify -q " + folder + " @" + out).out, Contains(": " + to + ", verified."));
    }
  }
}

TEST_CASE("families: verify compares config.json with the needs of a folder's streams") {
  const Folder f;
  const auto says = [&](const char* family, auto&& change) {
    const std::string folder = (kFamilies / family).string(), config = f / family + "/config.json";
    if (!fs::exists(config)) f.succeeds("convert " + folder + " @" + family + " --to rms_norm -q");
    nlohmann::json changed = nlohmann::json::parse(read(config));
    const nlohmann::json good = changed;
    change(changed["isonorm"]);
    write_text(config, changed.dump());
    const ChildResult r = f.run("verify " + folder + " @" + family);
    write_text(config, good.dump());
    return r;
  };
  const auto refused = [&](const char* family, const std::string& words, auto&& change) {
    const ChildResult r = says(family, change);
    INFO(r.out << r.err);
    CHECK(r.code == 3);
    CHECK_THAT(r.err, Contains(words));
  };
  const ChildResult widths = says("clip", [&](auto& said) {
    CHECK((said["width"] == 16) != (said["norms"]["text_model.final_layer_norm"].contains("width")));
    CHECK((said["width"] == 12) != (said["norms"]["vision_model.post_layernorm"].contains("width")));
  });
  CHECK(widths.code == 0);
  CHECK_THAT(widths.out, Contains("text: equivalent: ") && Contains("vision: equivalent: "));
  refused("clip", "it is recentred at no module", [](auto& said) { said.erase("recentred"); });
  refused("clip", "by its description at", [](auto& said) { said["recentred"] = {"text_model.encoder.layers.0"}; });
  refused("bloom", "does not say that 'transformer.word_embeddings_layernorm'",
          [](auto& said) { said.erase("identity"); });
  refused("bloom", "identity, recentred, scales", [](auto& said) { said["identity"] = {3}; });
  CHECK(says("dinov2", [](auto& said) { CHECK(said["scales"].size() == 4); }).code == 0);
  // isonorm_torch.py runs the norms by their entries.
  for (const char* norm : {"transformer.ln_f", "transformer.h.1.ln_1"})
    refused("gpt2", text("describes the norm '", norm, "' as '{\"eps\":1.0}', it is {\"eps\":1e-05}"),
            [&](auto& said) { said["norms"][norm]["eps"] = 1.0; });
  refused("gpt2", "it is {\"eps\":1e-05,\"width\":12}", [](auto& said) { said["width"] = 13; });
  refused("gpt2", "expected version 1, form", [](auto& said) { said["width"] = "12"; });
  refused("gpt2", "expected version 1, form", [](auto& said) { said["norms"]["transformer.ln_f"] = 1e-5; });
  f.succeeds("convert " + (kFamilies / "nemotron").string() + " @nemotron --to rms_norm --fold none -q");
  CHECK(says("nemotron", [](auto&) {}).code == 0);  // of sorted keys, as transformers writes them
  refused("nemotron", "it is {\"eps\":1e-05,\"gain\":\"1+w\",\"bias\":\"b\"}",
          [](auto& said) { said["norms"]["model.norm"]["gain"] = "w"; });
}

TEST_CASE("families: what CLIP says of a tower twice is read as transformers reads it") {
  const Folder f;
  fs::copy(kFamilies / "clip", f / "clip");
  nlohmann::json config = nlohmann::json::parse(read(f / "clip/config.json"));
  const auto eps_of = [&](const char* stream) {
    write_text(f / "clip/config.json", config.dump());
    const auto spec = nlohmann::json::parse(f.succeeds("spec @clip").out);
    return spec["streams"][stream]["norms"].begin()->get<std::string>();
  };
  config["text_config_dict"] = nullptr;
  CHECK(eps_of("text") == "1e-05");
  config["text_config_dict"] = config["text_config"];
  config["text_config_dict"]["layer_norm_eps"] = 0.5;
  CHECK(eps_of("text") == "0.5");
  CHECK(eps_of("vision") == "1e-05");
  config["text_config_dict"].erase("layer_norm_eps"), config["text_config"]["layer_norm_eps"] = 0.5;
  CHECK(eps_of("text") == "1e-05");  // its default counts, not what the other says
}
