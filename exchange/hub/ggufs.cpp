// The rows of llama.cpp's architectures. Sources: github.com/ggml-org/llama.cpp, src/llama-model.cpp and
// src/models/<architecture>.cpp (computation and keys), gguf-py/gguf/constants.py (names). tests/fixtures/run_gguf.py
// runs each row in llama.cpp.
#include "exchange/hub/gguf.h"
#include "exchange/hub/port.h"

namespace isonorm::hub {
namespace {

using Key = Port::Key;
using Part = Port::Part;
using Fixed = Port::Fixed;
using Change = Port::Change;

std::vector<Key> keys(std::string_view eps) {
  return {{"vocab", {"vocab_size"}},
          {"context", {"context_length"}},
          {"width", {"embedding_length"}},
          {"depth", {"block_count"}},
          {"mlp_width", {"feed_forward_length"}},
          {"heads", {"attention/head_count"}},
          {"kv_heads", {"attention/head_count_kv"}},
          {"head_width", {"/head_width"}},
          {"eps", {eps}},
          {"tied", {"/tied"}, "", kFlag}};
}
const std::vector<Key> kLayerNormKeys = keys("attention/layer_norm_epsilon"),
                       kRmsNormKeys = keys("attention/layer_norm_rms_epsilon");
const std::vector<Key> kRotaryKeys = {{"rotary_base", {"rope/freq_base"}}, {"rotary_share", {"/rotary_share"}}};
// llama.cpp has only the tanh approximation of GELU.
const std::vector<Key> kGeluKeys = {
    {"activation", {"/activation"}, "", {{"gelu_tanh", "gelu_tanh"}, {"gelu", "gelu"}}}};

const std::vector<Fixed> kOfLayerNorm = {{"affine", "true"}, {"form", "layer_norm"}},
                         kOfRmsNorm = {{"affine", "true"}, {"norm_bias", "false"}, {"form", "uncentred_rms_norm"}},
                         kHalves = {{"positions", "rotary_halves"}},
                         kOfLlama = {{"bias", "false"}, {"activation", "swiglu"}}, kBareHead = {{"head_bias", "false"}},
                         kOneNorm = {{"parallel", "true"}, {"shared_norm", "true"}};

std::vector<Part> outer(const std::vector<std::string_view>& norms, const std::vector<std::string_view>& head) {
  std::vector<Part> parts = {{"token", {"token_embd"}, kWeight},
                             {"head", {"output"}, head, Change::none, {"tied", "false"}}};
  if (!norms.empty()) parts.push_back({"norm", {"output_norm"}, norms});
  return parts;
}
std::vector<Part> norms(const std::vector<std::string_view>& ends) {
  return {{"blocks.*.norm1", {"blk.*.attn_norm"}, ends}, {"blocks.*.norm2", {"blk.*.ffn_norm"}, ends}};
}
std::vector<Part> branches(const std::vector<std::string_view>& ends) {
  return {{"blocks.*.attn.proj", {"blk.*.attn_output"}, ends},
          {"blocks.*.mlp.fc1", {"blk.*.ffn_up"}, ends},
          {"blocks.*.mlp.fc2", {"blk.*.ffn_down"}, ends}};
}
// Queries, keys and values in one tensor; and in three tensors (below).
std::vector<Part> packed(const std::vector<std::string_view>& ends) {
  return {{"blocks.*.attn.qkv", {"blk.*.attn_qkv"}, ends}};
}
std::vector<Part> apart(Change change = Change::none) {
  return {{"blocks.*.attn.qkv", {"blk.*.attn_q", "blk.*.attn_k", "blk.*.attn_v"}, kWeight, change},
          {"blocks.*.attn.qkv.bias",
           {"blk.*.attn_q.bias", "blk.*.attn_k.bias", "blk.*.attn_v.bias"},
           {},
           Change::none,
           {"qkv_bias", "true"}},
          {"blocks.*.mlp.gate", {"blk.*.ffn_gate"}, kWeight}};
}
const std::vector<Part> kPosition = {{"position", {"position_embd"}, kWeight}};
const std::vector<Part> kHeadNorms = {{"blocks.*.attn.q_norm", {"blk.*.attn_q_norm"}, kWeight},
                                      {"blocks.*.attn.k_norm", {"blk.*.attn_k_norm"}, kWeight}};

Port row(std::string_view type, const std::vector<Key>& keys, const std::vector<Fixed>& fixed,
         const std::vector<Part>& parts) {
  return {
      .type = type, .architecture = type, .model = "gpt", .stems = {""}, .keys = keys, .fixed = fixed, .parts = parts};
}

}  // namespace

std::span<const Port> gguf_ports() {
  static const std::vector<Port> all = {
      row("llama", kRmsNormKeys + kRotaryKeys, kOfRmsNorm + kOfLlama + kHalves,
          outer(kWeight, kWeight) + norms(kWeight) + branches(kWeight) + apart(Change::turned)),
      row("llama", kRmsNormKeys + kRotaryKeys, kOfRmsNorm + kOfLlama + std::vector<Fixed>{{"positions", "rotary"}},
          outer(kWeight, kWeight) + norms(kWeight) + branches(kWeight) + apart()),
      row("qwen2", kRmsNormKeys + kRotaryKeys,
          kOfRmsNorm + kOfLlama + kHalves + std::vector<Fixed>{{"qkv_bias", "true"}},
          outer(kWeight, kWeight) + norms(kWeight) + branches(kWeight) + apart()),
      row("qwen3", kRmsNormKeys + kRotaryKeys,
          kOfRmsNorm + kOfLlama + kHalves + std::vector<Fixed>{{"qk_norm", "rms_norm"}},
          outer(kWeight, kWeight) + norms(kWeight) + branches(kWeight) + apart() + kHeadNorms),
      row("olmo", kLayerNormKeys + kRotaryKeys,
          kOfLlama + kHalves + std::vector<Fixed>{{"affine", "false"}, {"form", "layer_norm"}},
          outer({}, kWeight) + branches(kWeight) + apart(Change::turned)),
      row("stablelm", kLayerNormKeys + kRotaryKeys + std::vector<Key>{{"qkv_bias", {"/qkv_bias"}, "", kFlag}},
          kOfLayerNorm + kOfLlama + kHalves, outer(kBoth, kWeight) + norms(kBoth) + branches(kWeight) + apart()),
      row("gpt2", kLayerNormKeys + kGeluKeys, kOfLayerNorm + kBareHead,
          outer(kBoth, kWeight) + kPosition + norms(kBoth) + packed(kBoth) + branches(kBoth)),
      row("starcoder", kLayerNormKeys + kGeluKeys, kOfLayerNorm + kBareHead,
          outer(kBoth, kWeight) + kPosition + norms(kBoth) + packed(kBoth) + branches(kBoth)),
      row("gptneox",
          kLayerNormKeys + kRotaryKeys + kGeluKeys +
              std::vector<Key>{{"parallel", {"use_parallel_residual"}, "", kFlag}},
          kOfLayerNorm + kHalves + kBareHead, outer(kBoth, kWeight) + norms(kBoth) + packed(kBoth) + branches(kBoth)),
      row("phi2", kLayerNormKeys + kRotaryKeys + kGeluKeys,
          kOfLayerNorm + kOneNorm + kHalves + std::vector<Fixed>{{"head_bias", "true"}},
          outer(kBoth, kBoth) + std::vector<Part>{norms(kBoth)[0]} + packed(kBoth) + branches(kBoth)),
      row("falcon", kLayerNormKeys + kRotaryKeys + kGeluKeys,
          kOfLayerNorm + kOneNorm + kHalves + std::vector<Fixed>{{"bias", "false"}},
          outer(kBoth, kWeight) + std::vector<Part>{norms(kBoth)[0]} + packed(kWeight) + branches(kWeight)),
      row("mpt", kLayerNormKeys + kGeluKeys,
          std::vector<Fixed>{{"affine", "true"},
                             {"norm_bias", "false"},
                             {"bias", "false"},
                             {"positions", "alibi"},
                             {"form", "layer_norm"}},
          outer(kWeight, kWeight) + norms(kWeight) + packed(kWeight) + branches(kWeight)),
  };
  return all;
}

}  // namespace isonorm::hub
