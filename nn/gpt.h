// GPT: a causal language model (Radford et al. 2019; Brown et al., 2005.14165), pre-normalized as in 2305.14858.
#pragma once

#include "nn/transformer.h"

namespace isonorm::nn {

struct GptOptions {
  int64_t vocab = 256;
  int64_t context = 64;
  int64_t position_offset = 0;     // first row of the position table that is used (OPT: 2)
  bool tied = false;               // the head uses the token table as its weight and has no bias
  bool head_bias = true;           // the head, unless it is tied, has a bias if the linear layers have biases
  TransformerOptions transformer;  // always causal, whatever it says

  // The options with every derived size filled in (TransformerOptions::complete), and with the default for an option
  // that has no effect: head_bias of a tied head or without biases, position_offset without a table. Throws if a size
  // is not possible.
  GptOptions complete() const;
};

// ids (i64) [batch, time <= context] -> logits [batch, time, vocab] in the parameters' dtype. Parameters: token and
// position tables, blocks, norm, head (unless tied). position [position_offset + context, width] exists if positions
// are learned.
class Gpt : public Module {
 public:
  explicit Gpt(const GptOptions& options);

  // The output of the final norm [batch, time, stored width], and the weight and bias that the head multiplies it with:
  // for a loss that never computes the logits (linear_cross_entropy). With a KV cache, `ids` holds only the new ids:
  // any number if the cache is empty, else one. The result equals the features of a pass over all ids up to rounding.
  Tensor features(const Tensor& ids, DecodingCache* cache = nullptr);
  WeightAndBias head() const;
  // The logits of features [..., stored width] -> [..., vocab].
  Tensor logits(const Tensor& rows) const;

  const GptOptions options;

 protected:
  Tensor forward(const Tensor& ids) override;

 private:
  Embedding& token_;
  Embedding* position_;  // null unless positions are learned
  TransformerStack& blocks_;
  Connection& norm_;
  Linear& head_;
};

// The GPT-3 sizes of 2305.14858: "small", "medium", "large", "xl", "2.7b", "6.7b", "13b", "175b". Attention's inner
// width is not the hidden size in "xl" and "13b". Throws on another name.
GptOptions gpt_preset(std::string_view name);

// The LLaMA sizes of 2506.22049: "9m", "20m", "35m", "40m", "60m", "71m", "100m", "130m", "250m", "350m", "1b", "3b",
// "7b". RMSNorm with a gain, SwiGLU, rotary embeddings with pairs half a head apart, no biases, an untied head, initial
// matrices of standard deviation 0.02 and a token table of sqrt(2/5). Throws on another name.
GptOptions llama_preset(std::string_view name);

}  // namespace isonorm::nn
