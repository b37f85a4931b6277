// Internal: models that become a LLaMA when their norms become RMSNorm.
#pragma once

#include "exchange/hub/config.h"

namespace isonorm::hub {

// The config.json of the LLaMA that equals an OLMo in rms_norm form: LlamaForCausalLM, or LlamaModel without a head.
// The tensors have the same names; every norm gets a gain of ones. Throws, with the reason, if config.json describes
// another model.
// Source: modeling_olmo.py and modeling_llama.py of transformers, which differ in the norm and in clip_qkv.
json llama_config(const Config& config);

}  // namespace isonorm::hub
