// Internal: models that are a LLaMA once their norms are RMSNorm.
#pragma once

#include "hub/config.h"

namespace isonorm::hub {

// config.json of the LLaMA that an OLMo is in rms_norm form: LlamaForCausalLM, or LlamaModel without a head. The tensors have
// the same names; the gain of each norm is a tensor of ones. Throws, with the reason, where config.json is of no such model.
// Source: modeling_olmo.py and modeling_llama.py of transformers, which differ in the norm and in clip_qkv.
json llama_config(const Config& config);

}  // namespace isonorm::hub
