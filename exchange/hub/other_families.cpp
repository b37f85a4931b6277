// Rows of image models, speech models, and models with several streams. Sources and tests as in families.cpp.
#include "exchange/hub/family.h"

namespace isonorm::hub {

namespace {

using Names = std::vector<std::string_view>;

Family clip(std::string_view type, const char* stem, Names bodies, std::string_view head) {
  return {.type = type,
          .width = "hidden_size",
          .eps = "layer_norm_eps",
          .depth = "num_hidden_layers",
          .stems = {stem, ""},
          .writers = {{"encoder.layers.*.self_attn.out_proj", 0}, {"encoder.layers.*.mlp.fc2", 0}},
          .readers = {{"encoder.layers.*.layer_norm1", 1, {"encoder.layers.*.self_attn.{q,k,v}_proj"}},
                      {"encoder.layers.*.layer_norm2", 1, {"encoder.layers.*.mlp.fc1"}}},
          .last = "final_layer_norm",
          .bodies = std::move(bodies),
          .models = {"CLIPModel"},
          .heads = {head},
          .apart = true,
          .off_stream = {"embeddings.position_ids"}};
}

Family clip_text() {
  Family f = clip("clip_text_model", "text_model.", {"CLIPTextModel"}, "text_projection");
  f.models.push_back("CLIPTextModelWithProjection");
  for (const char* table : {"embeddings.token_embedding.weight", "embeddings.position_embedding.weight"})
    f.writers.push_back({table, 1});
  f.absent = {{"text_projection.bias"}};
  return f;
}

// Without a head the model returns the bare stream, whose mean a conversion would remove.
Family clip_vision() {
  Family f = clip("clip_vision_model", "vision_model.", {}, "visual_projection");
  f.models.push_back("CLIPVisionModelWithProjection");
  f.last = "post_layernorm", f.entry = "encoder.layers.0";
  for (const char* name : {"embeddings.class_embedding", "embeddings.patch_embedding.weight",
                           "embeddings.position_embedding.weight", "pre_layrnorm"})
    f.off_stream.push_back(name);
  f.absent = {{"visual_projection.bias"}};
  return f;
}

Family of_clip(Family f, std::string_view stream, std::string_view config) {
  f.type = "clip", f.stream = stream, f.config = config;
  if (stream == "text") f.beside = {"logit_scale"};
  return f;
}

// The classifier reads the class token's row and the mean of the patch rows, side by side.
Family dino(std::string_view type, std::string_view stem, Names bodies, Names models) {
  using When = Family::When;
  static const When kPlain{"use_swiglu_ffn", false, false}, kGated{"use_swiglu_ffn", true, false};
  const std::string_view second = "encoder.layer.*.layer_scale2.lambda1", before = "encoder.layer.*.norm2";
  return {.type = type,
          .width = "hidden_size",
          .eps = "layer_norm_eps",
          .depth = "num_hidden_layers",
          .eps_otherwise = 1e-6,
          .stems = {stem, ""},
          .writers = {{"embeddings.cls_token", 2},
                      {"embeddings.mask_token", 1, true},
                      {"embeddings.register_tokens", 2, true},
                      {"embeddings.position_embeddings", 2},
                      {"embeddings.patch_embeddings.projection", 0},
                      {"encoder.layer.*.attention.output.dense", 0, false, "encoder.layer.*.layer_scale1.lambda1"},
                      {"encoder.layer.*.mlp.fc2", 0, false, second, "", {kPlain}},
                      {"encoder.layer.*.mlp.weights_out", 0, false, second, "", {kGated}}},
          .readers = {{"encoder.layer.*.norm1", 1, {"encoder.layer.*.attention.attention.{query,key,value}"}},
                      {before, 1, {"encoder.layer.*.mlp.fc1"}, {kPlain}},
                      {before, 1, {"encoder.layer.*.mlp.weights_in"}, {kGated}}},
          .last = "layernorm",
          .bodies = std::move(bodies),
          .models = std::move(models),
          .heads = {"classifier"},
          .parts = 2,
          .absent = {{"encoder.layer.*.attention.attention.{query,key,value}.bias", {{"qkv_bias", false, true}}}}};
}

// The position convolution reads the bare projection and is followed by an activation.
Family speech(std::string_view type, std::string_view stem, Names bodies, Names models) {
  constexpr std::string_view kPostLn = "its norms are on the residual stream (Post-LN)";
  return {
      .type = type,
      .width = "hidden_size",
      .eps = "layer_norm_eps",
      .depth = "num_hidden_layers",
      .stems = {stem, ""},
      .writers = {{"encoder.layers.*.attention.out_proj", 0}, {"encoder.layers.*.feed_forward.output_dense", 0}},
      .readers = {{"encoder.layers.*.layer_norm", 1, {"encoder.layers.*.attention.{q,k,v}_proj"}},
                  {"encoder.layers.*.final_layer_norm", 1, {"encoder.layers.*.feed_forward.intermediate_dense"}}},
      .last = "encoder.layer_norm",
      .bodies = std::move(bodies),
      .models = std::move(models),
      .heads = {"lm_head"},
      .entry = "encoder.layers.0",
      .apart = true,
      .off_stream = {"feature_extractor.**", "feature_projection.**", "encoder.pos_conv_embed.**", "masked_spec_embed"},
      .refused = {{"do_stable_layer_norm", "false", kPostLn}, {"do_stable_layer_norm", "", kPostLn}}};
}

// timm's VisionTransformer. config.json names the architecture, which determines norm and eps, and may have more
// options.
Family timm(std::string_view type) {
  constexpr std::string_view kOwnBlocks = "it replaces the norm or block that this family has";
  constexpr std::string_view kPools = "other readers of the last norm's rows are not supported";
  return {.type = type,
          .width = "num_features",
          .eps = "",
          .depth = "",
          .eps_otherwise = 1e-6,
          .stems = {""},
          .writers = {{"patch_embed.proj", 0},
                      {"cls_token", 2, true},
                      {"dist_token", 2, true},
                      {"reg_token", 2, true},
                      {"pos_embed", 2, true},
                      {.pattern = "blocks.*.attn.proj", .dim = 0, .scale = "blocks.*.ls1.gamma", .bare = true},
                      {.pattern = "blocks.*.mlp.fc2", .dim = 0, .scale = "blocks.*.ls2.gamma", .bare = true}},
          .readers = {{"blocks.*.norm1", 1, {"blocks.*.attn.qkv"}}, {"blocks.*.norm2", 1, {"blocks.*.mlp.fc1"}}},
          .last = "norm",
          .bodies = {""},
          .models = {""},
          .heads = {"head", "head_dist"},
          .pooled = "fc_norm",
          .refused = {{"architecture", "**_rpn_**", "its norms are on the outputs of the branches (res-post-norm)"},
                      {"norm_layer", "**", kOwnBlocks},
                      {"block_fn", "**", kOwnBlocks}},
          .allowed = {{"global_pool", {"\"\"", "\"avg\"", "\"token\""}, kPools}}};
}

// The embeddings are followed by a norm, so the stream has a mean.
Family timm_clip() {
  Family f = timm("timm/vit_*_clip_*");
  f.eps_otherwise = 1e-5, f.entry = "blocks.0";
  std::erase_if(f.writers, [&](const Family::Writer& w) {
    const bool before = w.pattern.find("blocks.") != 0;
    if (before) f.off_stream.push_back(w.pattern);
    return before;
  });
  f.off_stream.push_back("norm_pre");
  f.needed = {"norm_pre"};
  return f;
}

}  // namespace

std::span<const Family> other_families() {
  static const Family all[] = {
      {.type = "vit",
       .width = "hidden_size",
       .eps = "layer_norm_eps",
       .depth = "num_hidden_layers",
       .eps_otherwise = 1e-12,
       .stems = {"vit.", ""},
       .writers = {{"embeddings.cls_token", 2},
                   {"embeddings.mask_token", 2, true},
                   {"embeddings.position_embeddings", 2},
                   {"embeddings.patch_embeddings.projection", 0},
                   {"encoder.layer.*.attention.output.dense", 0},
                   {"encoder.layer.*.output.dense", 0}},
       .readers = {{"encoder.layer.*.layernorm_before", 1, {"encoder.layer.*.attention.attention.{query,key,value}"}},
                   {"encoder.layer.*.layernorm_after", 1, {"encoder.layer.*.intermediate.dense"}}},
       .last = "layernorm",
       .bodies = {"ViTModel"},
       .models = {"ViTForImageClassification"},
       .heads = {"classifier"},
       .off_stream = {"pooler.dense"},
       .absent = {{"encoder.layer.*.attention.attention.{query,key,value}.bias", {{"qkv_bias", false, true}}}}},
      {.type = "deit",
       .width = "hidden_size",
       .eps = "layer_norm_eps",
       .depth = "num_hidden_layers",
       .eps_otherwise = 1e-12,
       .stems = {"deit.", ""},
       .writers = {{"embeddings.cls_token", 2},
                   {"embeddings.distillation_token", 2},
                   {"embeddings.mask_token", 2, true},
                   {"embeddings.position_embeddings", 2},
                   {"embeddings.patch_embeddings.projection", 0},
                   {"encoder.layer.*.attention.output.dense", 0},
                   {"encoder.layer.*.output.dense", 0}},
       .readers = {{"encoder.layer.*.layernorm_before", 1, {"encoder.layer.*.attention.attention.{query,key,value}"}},
                   {"encoder.layer.*.layernorm_after", 1, {"encoder.layer.*.intermediate.dense"}}},
       .last = "layernorm",
       .bodies = {"DeiTModel"},
       .models = {"DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"},
       .heads = {"classifier", "cls_classifier", "distillation_classifier"},
       .off_stream = {"pooler.dense"},
       .absent = {{"encoder.layer.*.attention.attention.{query,key,value}.bias", {{"qkv_bias", false, true}}}}},
      clip_text(),
      clip_vision(),
      of_clip(clip_text(), "text", "text_config"),
      of_clip(clip_vision(), "vision", "vision_config"),
      dino("dinov2", "dinov2.", {"Dinov2Model"}, {"Dinov2ForImageClassification"}),
      dino("dinov2_with_registers", "dinov2_with_registers.", {"Dinov2WithRegistersModel"},
           {"Dinov2WithRegistersForImageClassification"}),
      {.type = "whisper",
       .stream = "decoder",
       .width = "d_model",
       .eps = "",
       .depth = "decoder_layers",
       .stems = {"model.decoder."},
       .writers = {{"embed_tokens.weight", 1},
                   {"embed_positions.weight", 1},
                   {"layers.*.self_attn.out_proj", 0},
                   {"layers.*.encoder_attn.out_proj", 0},
                   {"layers.*.fc2", 0}},
       .readers = {{"layers.*.self_attn_layer_norm", 1, {"layers.*.self_attn.{q,k,v}_proj"}},
                   {"layers.*.encoder_attn_layer_norm", 1, {"layers.*.encoder_attn.q_proj"}},
                   {"layers.*.final_layer_norm", 1, {"layers.*.fc1"}}},
       .last = "layer_norm",
       .bodies = {},
       .models = {"WhisperForConditionalGeneration"},
       .heads = {"proj_out"},
       .tied = true,
       .absent = {{"proj_out.bias"}, {"layers.*.{self_attn,encoder_attn}.k_proj.bias"}}},
      {.type = "whisper",
       .stream = "encoder",
       .width = "d_model",
       .eps = "",
       .depth = "encoder_layers",
       .stems = {"model.encoder."},
       .writers = {{"layers.*.self_attn.out_proj", 0}, {"layers.*.fc2", 0}},
       .readers = {{"layers.*.self_attn_layer_norm", 1, {"layers.*.self_attn.{q,k,v}_proj"}},
                   {"layers.*.final_layer_norm", 1, {"layers.*.fc1"}}},
       .last = "layer_norm",
       .bodies = {},
       .models = {"WhisperForConditionalGeneration"},
       .heads = {"model.decoder.layers.*.encoder_attn.{k,v}_proj"},
       .entry = "layers.0",
       .apart = true,
       .off_stream = {"conv1", "conv2", "embed_positions.weight"},
       .absent = {{"layers.*.self_attn.k_proj.bias"}}},
      speech("wav2vec2", "wav2vec2.", {"Wav2Vec2Model"}, {"Wav2Vec2ForCTC"}),
      speech("hubert", "hubert.", {"HubertModel"}, {"HubertForCTC"}),
      timm_clip(),
      timm("timm/{vit,deit,deit3,flexivit}_*"),
      {.type = "torch_encoder",
       .width = "d_model",
       .eps = "layer_norm_eps",
       .depth = "",
       .stems = {""},
       .writers = {{"layers.*.self_attn.out_proj", 0}, {"layers.*.linear2", 0}},
       .readers = {{"layers.*.norm1", 1, {"layers.*.self_attn.in_proj_weight"}},
                   {"layers.*.norm2", 1, {"layers.*.linear1"}}},
       .last = "norm",
       .bodies = {""},
       .entry = "layers.0",
       .refused = {{"norm_first", "false", "its norms are on the residual stream (Post-LN)"},
                   {"norm_first", "", "its norms are on the residual stream (Post-LN) unless it is true"}}},
  };
  return all;
}

}  // namespace isonorm::hub
