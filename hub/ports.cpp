// The rows. Sources: transformers' modeling_<type>.py (what is computed) and configuration_<type>.py (keys and defaults); each
// is held to what its program computes by tests/tools/port_test.cpp.
#include "hub/port.h"

namespace isonorm::hub {
namespace {

using Key = Port::Key;
using Part = Port::Part;
using Change = Port::Change;

const std::vector<std::string_view> kWeight = {".weight"}, kBoth = {".weight", ".bias"};

const std::vector<Port::Value> kFlag = {{"false", "false"}, {"true", "true"}};
const std::vector<Port::Value> kActivations = {
    {"gelu", "gelu"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"}, {"relu", "relu"},
    {"silu", "silu"}, {"swish", "silu"},         {"quick_gelu", "quick_gelu"}};

template <class T> std::vector<T> operator+(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Of the models whose names are those of GPT-2.
std::vector<Key> gpt2_keys(std::string_view activation) {
  return {{"vocab", {"vocab_size"}, "50257"},
          {"context", {"max_position_embeddings", "n_positions"}, "1024"},  // the first: by its attribute_map
          {"width", {"hidden_size", "n_embd"}, "768"},
          {"depth", {"num_hidden_layers", "n_layer"}, "12"},
          {"heads", {"num_attention_heads", "n_head"}, "12"},
          {"mlp_width", {"n_inner"}, "0"},
          {"activation", {"activation_function"}, activation, kActivations},
          {"eps", {"layer_norm_epsilon"}, "1e-5"},
          {"tied", {"tie_word_embeddings"}, "true", kFlag},
          {"", {"scale_attn_weights"}, "true", {{"true", ""}}},
          {"", {"add_cross_attention"}, "false", {{"false", ""}}}};
}
std::vector<Part> gpt2_parts(Change matrices) {
  return {{"token", {".wte"}, kWeight},
          {"position", {".wpe"}, kWeight},
          {"blocks.*.norm1", {".h.*.ln_1"}, kBoth},
          {"blocks.*.attn.qkv", {".h.*.attn.c_attn"}, kBoth, matrices},
          {"blocks.*.attn.proj", {".h.*.attn.c_proj"}, kBoth, matrices},
          {"blocks.*.norm2", {".h.*.ln_2"}, kBoth},
          {"blocks.*.mlp.fc1", {".h.*.mlp.c_fc"}, kBoth, matrices},
          {"blocks.*.mlp.fc2", {".h.*.mlp.c_proj"}, kBoth, matrices},
          {"norm", {".ln_f"}, kBoth},
          {"head", {"lm_head"}, kWeight, Change::none, {"tied", "false"}},
          {"head.bias", {"lm_head.weight"}, {}, Change::zeros, {"tied", "false"}}};
}

// Of the models whose names are those of LLaMA.
std::vector<Key> llama_keys(std::string_view vocab, std::string_view context, std::string_view width,
                            std::string_view mlp_width, std::string_view kv_heads) {
  return {{"vocab", {"vocab_size"}, vocab},
          {"context", {"max_position_embeddings"}, context},
          {"width", {"hidden_size"}, width},
          {"mlp_width", {"intermediate_size"}, mlp_width},
          {"depth", {"num_hidden_layers"}, "32"},
          {"heads", {"num_attention_heads"}, "32"},
          {"kv_heads", {"num_key_value_heads"}, kv_heads},
          {"activation", {"hidden_act"}, "silu", {{"silu", "swiglu"}, {"swish", "swiglu"}}},
          {"rotary_base", {"rope_parameters.rope_theta", "rope_theta"}, "10000"},
          {"tied", {"tie_word_embeddings"}, "false", kFlag},
          {"", {"rope_parameters.rope_type"}, "default", {{"default", ""}}},
          {"", {"rope_parameters.type"}, "default", {{"default", ""}}},
          {"", {"rope_scaling"}, "null", {{"null", ""}}},
          {"", {"attention_bias"}, "false", {{"false", ""}}}};
}
const std::vector<Key> kLlamaKeys = llama_keys("32000", "2048", "4096", "11008", "0");
const std::vector<Key> kQwenKeys = llama_keys("151936", "32768", "4096", "22016", "32") +
                                   std::vector<Key>{{"", {"use_sliding_window"}, "false", {{"false", ""}}}};
const std::vector<Port::Fixed> kLlamaFixed = {{"bias", "false"}, {"positions", "rotary_halves"}};
// Of those with RMSNorm.
std::vector<Key> rms_keys(std::string_view head_width) {
  return {{"eps", {"rms_norm_eps"}, "1e-6"}, {"head_width", {"head_dim"}, head_width}};
}
const std::vector<Key> kRmsKeys = rms_keys("0");
const std::vector<Port::Fixed> kRmsFixed = {{"affine", "true"}, {"norm_bias", "false"}, {"form", "uncentred_rms_norm"}};
const std::vector<Part> kLlamaParts = {
    {"token", {".embed_tokens"}, kWeight},
    {"blocks.*.attn.qkv",
     {".layers.*.self_attn.q_proj", ".layers.*.self_attn.k_proj", ".layers.*.self_attn.v_proj"},
     kWeight},
    {"blocks.*.attn.qkv.bias",
     {".layers.*.self_attn.q_proj.bias", ".layers.*.self_attn.k_proj.bias", ".layers.*.self_attn.v_proj.bias"},
     {},
     Change::none,
     {"qkv_bias", "true"}},
    {"blocks.*.attn.proj", {".layers.*.self_attn.o_proj"}, kWeight},
    {"blocks.*.mlp.gate", {".layers.*.mlp.gate_proj"}, kWeight},
    {"blocks.*.mlp.fc1", {".layers.*.mlp.up_proj"}, kWeight},
    {"blocks.*.mlp.fc2", {".layers.*.mlp.down_proj"}, kWeight},
    {"head", {"lm_head"}, kWeight, Change::none, {"tied", "false"}}};
std::vector<Part> llama_norms(const std::vector<std::string_view>& ends) {
  return {{"blocks.*.norm1", {".layers.*.input_layernorm"}, ends},
          {"blocks.*.norm2", {".layers.*.post_attention_layernorm"}, ends},
          {"norm", {".norm"}, ends}};
}

}  // namespace

std::span<const Port> ports() {
  static const Port all[] = {
      {.type = "gpt2",
       .architecture = "GPT2LMHeadModel",
       .model = "gpt",
       .stems = {"transformer.", ""},
       .keys = gpt2_keys("gelu_new") +
               std::vector<Key>{{"", {"scale_attn_by_inverse_layer_idx"}, "false", {{"false", ""}}}},
       .fixed = {{"affine", "true"}, {"form", "layer_norm"}},
       .parts = gpt2_parts(Change::transposed),
       .passed_over = {".h.*.attn.bias", ".h.*.attn.masked_bias"},
       .tied_head = "lm_head.weight"},
      {.type = "llama",
       .architecture = "LlamaForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = kLlamaKeys + kRmsKeys + std::vector<Key>{{"", {"mlp_bias"}, "false", {{"false", ""}}}},
       .fixed = kLlamaFixed + kRmsFixed,
       .parts = kLlamaParts + llama_norms(kWeight),
       .passed_over = {".layers.*.self_attn.rotary_emb.inv_freq"},
       .tied_head = "lm_head.weight"},
      {.type = "mistral",
       .architecture = "MistralForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = kLlamaKeys + kRmsKeys + std::vector<Key>{{"", {"sliding_window"}, "4096", {{"null", ""}}}},
       .fixed = kLlamaFixed + kRmsFixed,
       .parts = kLlamaParts + llama_norms(kWeight),
       .tied_head = "lm_head.weight"},
      {.type = "qwen2",
       .architecture = "Qwen2ForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = kQwenKeys + kRmsKeys,
       .fixed = kLlamaFixed + kRmsFixed + std::vector<Port::Fixed>{{"qkv_bias", "true"}},
       .parts = kLlamaParts + llama_norms(kWeight),
       .tied_head = "lm_head.weight"},
      {.type = "qwen3",
       .architecture = "Qwen3ForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = kQwenKeys + rms_keys("128"),
       .fixed = kLlamaFixed + kRmsFixed + std::vector<Port::Fixed>{{"qk_norm", "rms_norm"}},
       .parts = kLlamaParts + llama_norms(kWeight) +
                std::vector<Part>{{"blocks.*.attn.q_norm", {".layers.*.self_attn.q_norm"}, kWeight},
                                  {"blocks.*.attn.k_norm", {".layers.*.self_attn.k_norm"}, kWeight}},
       .tied_head = "lm_head.weight"},
      {.type = "olmo",
       .architecture = "OlmoForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = kLlamaKeys + std::vector<Key>{{"", {"clip_qkv"}, "null", {{"null", ""}}}},
       .fixed = kLlamaFixed + std::vector<Port::Fixed>{{"affine", "false"}, {"eps", "1e-5"}, {"form", "layer_norm"}},
       .parts = kLlamaParts,
       .passed_over = {".layers.*.self_attn.rotary_emb.inv_freq"},
       .tied_head = "lm_head.weight"},
      {.type = "stablelm",
       .architecture = "StableLmForCausalLM",
       .model = "gpt",
       .stems = {"model."},
       .keys = llama_keys("50304", "4096", "2560", "6912", "32") +
               std::vector<Key>{
                   {"eps", {"layer_norm_eps"}, "1e-5"},
                   {"rotary_share", {"rope_parameters.partial_rotary_factor", "partial_rotary_factor"}, "0.25"},
                   {"qkv_bias", {"use_qkv_bias"}, "false", kFlag},
                   {"", {"qk_layernorm"}, "false", {{"false", ""}}},
                   {"", {"use_parallel_residual"}, "false", {{"false", ""}}}},
       .fixed = kLlamaFixed + std::vector<Port::Fixed>{{"affine", "true"}, {"form", "layer_norm"}},
       .parts = kLlamaParts + llama_norms(kBoth),
       .tied_head = "lm_head.weight"},
      {.type = "gpt_bigcode",
       .architecture = "GPTBigCodeForCausalLM",
       .model = "gpt",
       .stems = {"transformer."},
       .keys =
           gpt2_keys("gelu_pytorch_tanh") + std::vector<Key>{{"kv_heads", {"multi_query"}, "true", {{"true", "1"}}}},
       .fixed = {{"affine", "true"}, {"form", "layer_norm"}},
       .parts = gpt2_parts(Change::none),
       .passed_over = {".h.*.attn.bias", ".h.*.attn.masked_bias"},
       .tied_head = "lm_head.weight"},
      {.type = "mpt",
       .architecture = "MptForCausalLM",
       .model = "gpt",
       .stems = {"transformer."},
       .keys = {{"vocab", {"vocab_size"}, "50368"},
                {"context", {"max_seq_len"}, "2048"},
                {"width", {"d_model"}, "2048"},
                {"depth", {"n_layers"}, "24"},
                {"heads", {"n_heads"}, "16"},
                {"eps", {"layer_norm_epsilon"}, "1e-5"},
                {"tied", {"tie_word_embeddings"}, "true", kFlag},
                {"", {"expansion_ratio"}, "4", {{"4", ""}}},
                {"", {"no_bias"}, "true", {{"true", ""}}},
                {"", {"logit_scale"}, "null", {{"null", ""}}},
                {"", {"attn_config.alibi"}, "true", {{"true", ""}}},
                {"", {"attn_config.alibi_bias_max"}, "8", {{"8", ""}}},
                {"", {"attn_config.clip_qkv"}, "null", {{"null", ""}}},
                {"", {"attn_config.qk_ln"}, "false", {{"false", ""}}},
                {"", {"attn_config.softmax_scale"}, "null", {{"null", ""}}}},
       .fixed = {{"affine", "true"},
                 {"norm_bias", "false"},
                 {"bias", "false"},
                 {"positions", "alibi"},
                 {"form", "layer_norm"}},
       .parts = {{"token", {".wte"}, kWeight},
                 {"blocks.*.norm1", {".blocks.*.norm_1"}, kWeight},
                 {"blocks.*.attn.qkv", {".blocks.*.attn.Wqkv"}, kWeight},
                 {"blocks.*.attn.proj", {".blocks.*.attn.out_proj"}, kWeight},
                 {"blocks.*.norm2", {".blocks.*.norm_2"}, kWeight},
                 {"blocks.*.mlp.fc1", {".blocks.*.ffn.up_proj"}, kWeight},
                 {"blocks.*.mlp.fc2", {".blocks.*.ffn.down_proj"}, kWeight},
                 {"norm", {".norm_f"}, kWeight},
                 {"head", {"lm_head"}, kWeight, Change::none, {"tied", "false"}}},
       .tied_head = "lm_head.weight"},
      {.type = "opt",
       .architecture = "OPTForCausalLM",
       .model = "gpt",
       .stems = {"model.decoder.", "decoder."},
       .keys = {{"vocab", {"vocab_size"}, "50272"},
                {"context", {"max_position_embeddings"}, "2048"},
                {"width", {"hidden_size"}, "768"},
                {"mlp_width", {"ffn_dim"}, "3072"},
                {"depth", {"num_hidden_layers"}, "12"},
                {"heads", {"num_attention_heads"}, "12"},
                {"activation", {"activation_function"}, "relu", kActivations},
                {"tied", {"tie_word_embeddings"}, "true", kFlag},
                {"", {"do_layer_norm_before"}, "true", {{"true", ""}}},
                {"", {"_remove_final_layer_norm"}, "false", {{"false", ""}}},
                {"", {"layer_norm_elementwise_affine"}, "true", {{"true", ""}}},
                {"", {"enable_bias"}, "true", {{"true", ""}}}},
       .fixed = {{"affine", "true"}, {"eps", "1e-5"}, {"position_offset", "2"}, {"form", "layer_norm"}},
       .parts = {{"token", {".embed_tokens"}, kWeight},
                 {"position", {".embed_positions"}, kWeight},
                 {"blocks.*.norm1", {".layers.*.self_attn_layer_norm"}, kBoth},
                 {"blocks.*.attn.qkv",
                  {".layers.*.self_attn.q_proj", ".layers.*.self_attn.k_proj", ".layers.*.self_attn.v_proj"},
                  kBoth},
                 {"blocks.*.attn.proj", {".layers.*.self_attn.out_proj"}, kBoth},
                 {"blocks.*.norm2", {".layers.*.final_layer_norm"}, kBoth},
                 {"blocks.*.mlp.fc1", {".layers.*.fc1"}, kBoth},
                 {"blocks.*.mlp.fc2", {".layers.*.fc2"}, kBoth},
                 {"norm", {".final_layer_norm"}, kBoth},
                 {"head", {"lm_head"}, kWeight, Change::none, {"tied", "false"}},
                 {"head.bias", {"lm_head.weight"}, {}, Change::zeros, {"tied", "false"}}},
       .tied_head = "lm_head.weight"},
      {.type = "gpt_neox",
       .architecture = "GPTNeoXForCausalLM",
       .model = "gpt",
       .stems = {"gpt_neox."},
       .keys = {{"vocab", {"vocab_size"}, "50432"},
                {"context", {"max_position_embeddings"}, "2048"},
                {"width", {"hidden_size"}, "6144"},
                {"mlp_width", {"intermediate_size"}, "24576"},
                {"depth", {"num_hidden_layers"}, "44"},
                {"heads", {"num_attention_heads"}, "64"},
                {"activation", {"hidden_act"}, "gelu", kActivations},
                {"rotary_base", {"rope_parameters.rope_theta", "rotary_emb_base"}, "10000"},
                {"rotary_share", {"rope_parameters.partial_rotary_factor", "rotary_pct"}, "0.25"},
                {"parallel", {"use_parallel_residual"}, "true", kFlag},
                {"eps", {"layer_norm_eps"}, "1e-5"},
                {"tied", {"tie_word_embeddings"}, "false", kFlag},
                {"", {"rope_parameters.rope_type"}, "default", {{"default", ""}}},
                {"", {"rope_parameters.type"}, "default", {{"default", ""}}},
                {"", {"rope_scaling"}, "null", {{"null", ""}}},
                {"", {"attention_bias"}, "true", {{"true", ""}}}},
       .fixed = {{"affine", "true"}, {"positions", "rotary_halves"}, {"form", "layer_norm"}},
       .parts = {{"token", {".embed_in"}, kWeight},
                 {"blocks.*.norm1", {".layers.*.input_layernorm"}, kBoth},
                 {"blocks.*.attn.qkv", {".layers.*.attention.query_key_value"}, kBoth, Change::by_head},
                 {"blocks.*.attn.proj", {".layers.*.attention.dense"}, kBoth},
                 {"blocks.*.norm2", {".layers.*.post_attention_layernorm"}, kBoth},
                 {"blocks.*.mlp.fc1", {".layers.*.mlp.dense_h_to_4h"}, kBoth},
                 {"blocks.*.mlp.fc2", {".layers.*.mlp.dense_4h_to_h"}, kBoth},
                 {"norm", {".final_layer_norm"}, kBoth},
                 {"head", {"embed_out"}, kWeight, Change::none, {"tied", "false"}},
                 {"head.bias", {"embed_out.weight"}, {}, Change::zeros, {"tied", "false"}}},
       .passed_over = {".layers.*.attention.bias", ".layers.*.attention.masked_bias",
                       ".layers.*.attention.rotary_emb.inv_freq"},
       .tied_head = "embed_out.weight"},
      {.type = "vit",
       .architecture = "ViTForImageClassification",
       .model = "vit",
       .stems = {"vit."},
       .keys = {{"image", {"image_size"}, "224"},
                {"channels", {"num_channels"}, "3"},
                {"patch", {"patch_size"}, "16"},
                {"classes", {"id2label", "num_labels"}, "2"},
                {"width", {"hidden_size"}, "768"},
                {"mlp_width", {"intermediate_size"}, "3072"},
                {"depth", {"num_hidden_layers"}, "12"},
                {"heads", {"num_attention_heads"}, "12"},
                {"activation", {"hidden_act"}, "gelu", kActivations},
                {"eps", {"layer_norm_eps"}, "1e-12"},
                {"", {"qkv_bias"}, "true", {{"true", ""}}}},
       .fixed = {{"affine", "true"}, {"form", "layer_norm"}, {"cls_position", "true"}},
       .parts = {{"cls", {".embeddings.cls_token"}, {}, Change::row},
                 {"position", {".embeddings.position_embeddings"}, {}, Change::rows},
                 {"patch.weight", {".embeddings.patch_embeddings.projection.weight"}, {}, Change::patches},
                 {"patch.bias", {".embeddings.patch_embeddings.projection.bias"}},
                 {"blocks.*.norm1", {".encoder.layer.*.layernorm_before"}, kBoth},
                 {"blocks.*.attn.qkv",
                  {".encoder.layer.*.attention.attention.query", ".encoder.layer.*.attention.attention.key",
                   ".encoder.layer.*.attention.attention.value"},
                  kBoth},
                 {"blocks.*.attn.proj", {".encoder.layer.*.attention.output.dense"}, kBoth},
                 {"blocks.*.norm2", {".encoder.layer.*.layernorm_after"}, kBoth},
                 {"blocks.*.mlp.fc1", {".encoder.layer.*.intermediate.dense"}, kBoth},
                 {"blocks.*.mlp.fc2", {".encoder.layer.*.output.dense"}, kBoth},
                 {"norm", {".layernorm"}, kBoth},
                 {"head", {"classifier"}, kBoth}}},
  };
  return all;
}

}  // namespace isonorm::hub
