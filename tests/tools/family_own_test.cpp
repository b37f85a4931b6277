// Folders of the families whose program is not of transformers: timm's ViT, torch.nn.TransformerEncoder.
#include <filesystem>

#include "tests/tools/small_run.h"

namespace fs = std::filesystem;

namespace {

const std::string kFamilies = "tests/fixtures/families/", kWeights = "/model.safetensors";

// A copy of a family's folder, whose config.json and tensors `change` may change.
template <class Change> std::string changed(const Folder& f, const std::string& family, Change change) {
  const std::string copy = f / "copy";
  fs::remove_all(copy);
  fs::copy(kFamilies + family, copy);
  nlohmann::json config = nlohmann::json::parse(read(copy + "/config.json"));
  TensorMap tensors = load_safetensors(copy + kWeights);
  change(config, tensors);
  write_text(copy + "/config.json", config.dump());
  save_safetensors(copy + kWeights, tensors);
  return copy;
}

}  // namespace

TEST_CASE("families: entries of timm's config.json that the row does not know are refused") {
  const Folder f;
  const auto refused = [&](const std::string& family, const std::string& says, auto change) {
    INFO(family << ' ' << says);
    f.refuses("convert " + changed(f, family, change) + " @out --to rms_norm", 3, says);
    CHECK_FALSE(fs::exists(f / "out"));
  };
  const auto args = [&](const std::string& key, const nlohmann::json& value, const std::string& says) {
    refused("timm_vit", says, [&](auto& config, auto&) { config["model_args"][key] = value; });
  };
  args("norm_layer", "rmsnorm", "\"norm_layer\" is \"rmsnorm\": it replaces the norm or block");
  args("block_fn", "res_post", "\"block_fn\" is \"res_post\"");
  for (const char* pool : {"max", "avgmax", "map", "prr", "anything"})
    args("global_pool", pool, "\"global_pool\" is '\"" + std::string(pool) + "\"', expected \"\", \"avg\", \"token\"");
  const auto is = [&](const char* name) { return [name](auto& config, auto&) { config["architecture"] = name; }; };
  refused("timm_vit", "res-post-norm", is("vit_base_patch16_rpn_224"));
  refused("timm_vit", "\"model_type\" is 'timm/resnet50', known are gpt2, ", is("resnet50"));
  refused("timm_vit", "there is no tensor 'norm_pre', which a model of type 'timm/vit_*_clip_*' has",
          is("vit_base_patch16_clip_224"));
  refused("timm_clip", "'norm_pre.bias' of shape [12] is unexpected", is("vit_base_patch16_224"));
  refused("timm_vit", "\"num_features\" is not there", [](auto& config, auto&) { config.erase("num_features"); });
  const auto added = [&](const char* name) {
    return [name](auto&, TensorMap& tensors) { tensors.add(name, zeros({12})); };
  };
  refused("timm_vit", "'attn_pool.latent' of shape [12] is unexpected", added("attn_pool.latent"));
  refused("timm_vit", "'blocks.*.attn.gate.bias' occurs 1 times", added("blocks.0.attn.gate.bias"));
}

TEST_CASE("families: exchanged layer scales of a timm model are found in its recorded results") {
  const Folder f;
  const std::string folder = kFamilies + "timm_dinov2";
  nlohmann::json spec = nlohmann::json::parse(f.succeeds("spec " + folder).out);
  auto& scales = spec["scales"];
  CHECK(scales.size() == 2);
  std::swap(scales["blocks.*.attn.proj"], scales["blocks.*.mlp.fc2"]);
  write_text(f / "spec", spec.dump());
  const ChildResult r =
      f.gives(1, "convert " + folder + " @out --to rms_norm -q --spec @spec --reference " + folder + ".rows");
  CHECK_THAT(r.out, Contains("reads are not the sum of what writers wrote"));
  CHECK(nlohmann::json::parse(f.succeeds("spec " + kFamilies + "timm_vit").out).count("scales") == 0);
}

TEST_CASE("families: timm's head reads through the norm of the rows' mean if it has one, and is rotated") {
  const Folder f;
  const std::string folder = kFamilies + "timm_vit_gap";
  CHECK(nlohmann::json::parse(f.succeeds("spec " + folder).out)["readers"]["head"]["norm"] == "fc_norm");
  f.succeeds("convert " + folder + " @rms --to rms_norm -q");
  f.succeeds("rotate @rms @turned --basis haar:1 -q");
  f.succeeds("verify @rms @turned --up-to rotation");
}

TEST_CASE("families: torch's encoder is Pre-LN where config.json says so; one changed entry is found") {
  const Folder f;
  const std::string folder = kFamilies + "torch_encoder";
  const auto first = [&](const nlohmann::json& value) {
    return changed(f, "torch_encoder", [&](auto& config, auto&) {
      value.is_null() ? config.erase("norm_first") : (config["norm_first"] = value, 0);
    });
  };
  f.refuses("convert " + first(false) + " @out --to rms_norm", 3, "\"norm_first\" is false: its norms are on");
  f.refuses("convert " + first(nullptr) + " @out --to rms_norm", 3, "\"norm_first\" is not there: its norms are on");
  f.refuses("convert " + folder + " @out --to crms_norm", 3, "norm");
  f.succeeds("convert " + folder + " @out --to rms_norm -q");
  nlohmann::json config = nlohmann::json::parse(read(f / "out/config.json"));
  CHECK(config["isonorm"]["recentred"] == nlohmann::json{"layers.0"});
  CHECK(config["isonorm"]["norms"]["norm"]["gain"] == "w");  // the user's rows, which stay as they are
  TensorMap tensors = load_safetensors(f / "out" + kWeights);
  tensors.at("layers.1.linear2.weight").mutable_data<float>()[7] += 1e-4F;
  save_safetensors(f / "out" + kWeights, tensors,
                   {{"stream.form", "rms_norm"}, {"stream.recentred", "[\"layers.0\"]"}});
  CHECK_THAT(f.gives(1, "verify " + folder + " @out").out,
             Contains("different: ") && Contains("layers.1.linear2.weight"));
}
