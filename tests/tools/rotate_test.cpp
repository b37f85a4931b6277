// isonorm rotate, and verify --up-to rotation: folders, files and models, what is refused, and hostile bases.
#include <filesystem>
#include <fstream>

#include "io/npy.h"
#include "streams/rotation.h"
#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kFamilies = "tests/fixtures/families/", kWeights = "/model.safetensors";

// The files of two folders, by the description of the first one.
std::string verify(const std::string& a, const std::string& b) {
  return "verify @" + a + kWeights + " @" + b + kWeights + " --spec @" + a;
}

}  // namespace

TEST_CASE("rotate: a converted folder of each family, by Haar and by Hadamard; verify finds the rotation") {
  const Folder f;
  int count = 0;
  for (const fs::directory_entry& e : fs::directory_iterator(kFamilies)) {
    const std::string name = e.path().filename().string();
    // These models also output rows that no reader follows, so the last norm keeps its gain.
    const bool kept = name == "clip_text_model" || name == "dinov2_gated" || name == "timm_dinov2";
    if (!e.is_directory() || name.ends_with("headless") || kept) continue;
    INFO(name);
    ++count;
    f.succeeds("convert " + kFamilies + name + " @" + name + " --to rms_norm -q");
    nlohmann::json said = f.json(name + "/config.json")["isonorm"];
    if (said.contains("recentred")) {
      f.refuses("rotate @" + name + " @out --basis haar:1", 3, "no weight produces them");
      continue;
    }
    const std::string basis = count % 2 ? "haar:1" : "hadamard:3", out = name + ".rotated";
    CHECK_THAT(f.succeeds("rotate @" + name + " @" + out + " -q --basis " + basis).out,
               Contains("uncentred_rms_norm") && Contains("tensors, verified."));
    said["form"] = "uncentred_rms_norm", said["rotation"] = basis;
    CHECK(f.json(out + "/config.json")["isonorm"] == said);  // the rest of which stays
    CHECK_THAT(f.gives(5, "verify -q @" + name + " @" + out).out, StartsWith("undecided: "));
    CHECK_THAT(f.succeeds("verify @" + name + " @" + out + " --up-to rotation").out,
               StartsWith("rotation: found from ") && Contains("uncentred_rms_norm, verified."));
    CHECK_THAT(f.gives(5, verify(name, out)).out, Contains("readers of random rows") && Contains(": equivalent") &&
                                                      Contains("undecided: ") && Contains("--up-to rotation"));
    CHECK_THAT(f.succeeds(verify(name, out) + " --up-to rotation").out,
               Contains("rotation: found from ") && Contains("equivalent: the two are one function. Up to a rotation"));
  }
  CHECK(count >= 26);
}

TEST_CASE("rotate: a rotation of a rotation; a wrong entry of the file; requirements for a folder") {
  const Folder f;
  f.succeeds("convert " + kFamilies + "gpt2 @rms --to rms_norm -q");
  f.succeeds("rotate @rms @one --basis haar:1 -q");
  f.succeeds("rotate @one @two --basis hadamard:2 --max-shard-size 4KB -q");
  CHECK(f.json("two/config.json")["isonorm"]["rotation"] == "haar:1, hadamard:2");
  TensorMap tensors = load_safetensors(f / ("one" + kWeights)), wrong;
  for (const auto& [name, t] : tensors) {
    Tensor copy = t + 0.0;
    if (name == "transformer.h.1.mlp.c_fc.weight") copy.mutable_data<float>()[7] += 1e-4f;
    wrong.add(name, copy);
  }
  save_safetensors(f / "wrong", wrong, {{"stream.form", "uncentred_rms_norm"}});
  const std::string against = "verify @rms" + kWeights + " @wrong --spec @rms";
  CHECK_THAT(f.gives(1, against + " --up-to rotation").out,
             Contains("transformer.h.1.mlp.c_fc.weight[") && Contains("different: "));
  CHECK_THAT(f.gives(1, against).out, Contains("different: "));
  f.refuses(
      "verify " + kFamilies + "gpt2" + kWeights + " @one" + kWeights + " --up-to rotation --spec " + kFamilies + "gpt2",
      3, "LayerNorm subtracts the mean");
  f.refuses("verify @one" + kWeights + " @two --up-to heads", 2, "--up-to");
  f.succeeds("convert " + kFamilies + "gpt2 @gains --to rms_norm --fold none -q");
  f.succeeds("convert " + kFamilies + "gpt2 @crms --to crms_norm -q");
  const struct {
    const char *folder, *basis;
    int code;
    const char* says;
  } refused[] = {{"@gains", "haar:1", 3, "has a gain or a bias, which acts on single coordinates"},
                 {"@crms", "haar:1", 3, "do not divide a stored row by its length"},
                 {"tests/fixtures/families/gpt2", "haar:1", 3, "does not say that it was converted"},
                 {"@rms", "haar:-1", 2, "expected haar:SEED"},
                 {"@rms", "hadamard:1x", 2, "expected hadamard:SEED"},
                 {"@rms", "@none", 4, "none"},
                 {"@rms", "@text.txt", 3, "text.txt"},
                 {"@rms", "@eleven.npy", 3, "[11, 11], the stream stores rows of 12"},
                 {"@rms", "@skew.npy", 3, "is not orthogonal"}};
  save_npy(f / "eleven.npy", eye(11, -1, {DType::f64}));
  save_npy(f / "skew.npy", eye(12, -1, {DType::f64}) + 1e-9);
  for (const auto& [folder, basis, code, says] : refused)
    f.refuses(text("rotate ", folder, " @out --basis ", basis), code, says);
  CHECK_FALSE(fs::exists(f / "out"));
  f.refuses("verify " + kFamilies + "gpt2 @one --up-to rotation", 3, "LayerNorm subtracts the mean");
  CHECK_THAT(f.gives(1, "verify " + kFamilies + "gpt2 @one").out, Contains("different: "));
  f.refuses("convert @one @out --to crms_norm", 3, "converted already");
  const nlohmann::json good = f.json("one/config.json");
  const auto says = [&](const char* key, const nlohmann::json& value, const char* what) {
    nlohmann::json config = good;
    config["isonorm"][key] = value;
    if (value.is_null()) config["isonorm"].erase(key);
    std::ofstream(f / "one/config.json") << config.dump();
    f.refuses("verify @rms @one --up-to rotation", 3, what);
  };
  says("rotation", nullptr, "no rotation");
  says("rotation", "", "expected version 1, form");
  says("rotation", 1, "expected version 1, form");
  says("form", "rms_norm", "and a rotation");
  says("recentred", {"transformer.h.0"}, "a recentred stream cannot be rotated");
  says("biases", {1}, "expected version 1, form");
  std::ofstream(f / "one/config.json") << good.dump();
  save_npy(f / "q.npy", streams::haar_rotation(12, 1));
  f.succeeds("rotate @rms @by_file --basis @q.npy -q");
  f.succeeds("verify @one" + kWeights + " @by_file" + kWeights + " --spec @rms");
}

TEST_CASE("rotate: a model that runs, and a described file, in both forms") {
  const Folder f;
  f.succeeds("train +small --affine --form layer_norm --steps 2 --checkpoint @ln -q");
  f.succeeds("convert @ln @rms --to rms_norm -q");
  const std::string out = f.succeeds("rotate @rms @rotated --basis hadamard:5").out;
  CHECK_THAT(out, Contains("logits of random inputs") && Contains("rotated") && Contains("verified."));
  CHECK_THAT(f.gives(5, "verify @rms @rotated").out, Contains("undecided: ") && !Contains("different: "));
  f.succeeds("verify @rms @rotated --up-to rotation");
  f.refuses("rotate @ln @out --basis haar:1", 3, "LayerNorm subtracts the mean");
  f.refuses("rotate @rms @rms --basis haar:1", 2, "OUT");
  f.succeeds("convert @ln @iso --to crms_isometric -q");
  f.refuses("rotate @iso @out --basis hadamard:1", 3, "no Hadamard matrix of order 7 is known here");
  CHECK_THAT(f.succeeds("rotate @iso @iso_rotated --basis haar:2 -q").out, Contains("crms_isometric"));
  f.succeeds("verify @iso @iso_rotated --up-to rotation");
  f.succeeds("convert @iso_rotated @back --to layer_norm -q");  // it is a LayerNorm model in other coordinates still
  const std::string hub = "tests/fixtures/hub/gpt2", spec = " --spec " + hub + ".json";
  f.succeeds("convert " + hub + ".safetensors @file --from layer_norm --to rms_norm -q" + spec);
  f.refuses("rotate " + hub + ".safetensors @out --basis haar:1" + spec, 2, "--spec needs --from");
  CHECK_THAT(f.succeeds("rotate @file @turned --basis haar:1 --dtype f64 -q" + spec).out,
             Contains("rotated as the description says; the description itself is unchecked."));
  f.succeeds("verify @file @turned --up-to rotation -q" + spec);
}
