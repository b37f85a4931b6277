#include "exchange/hub/llama.h"

#include "core/error.h"

namespace isonorm::hub {

json llama_config(const Config& config) {
  const std::string type = config.word("model_type"), clip = config.text_of("clip_qkv");
  check(type == "olmo", "config.json: a model of type '", type,
        "' has other layers than a LLaMA, or norms with a bias: only olmo becomes a LLaMA");
  check(clip.empty(), "config.json: \"clip_qkv\" is ", clip, ": a LLaMA does not clip queries, keys and values");
  check(!config.own_code(), "config.json names code of its own (auto_map), which may not be a LLaMA's");
  json llama = config.values();
  llama["model_type"] = "llama";
  const bool head = config.architecture() == "OlmoForCausalLM";
  llama["architectures"] = {head ? "LlamaForCausalLM" : "LlamaModel"};
  llama["rms_norm_eps"] = 1e-5;
  llama["mlp_bias"] = false;
  for (const char* key : {"clip_qkv", "pretraining_tp"}) llama.erase(key);
  // A missing key means OLMo's default, which differs from LLaMA's.
  const json defaults{{"vocab_size", 50304}, {"pad_token_id", 1}, {"bos_token_id", nullptr}, {"eos_token_id", 50279}};
  for (const auto& [key, value] : defaults.items())
    if (!llama.contains(key)) llama[key] = value;
  return llama;
}

}  // namespace isonorm::hub
