// The encoder-decoder Transformer (Vaswani et al., 1706.03762): one stack encodes the source, and another one writes
// the target token by token and attends to the encoded source.
#pragma once

#include "nn/transformer.h"

namespace isonorm::nn {

struct EncoderDecoderOptions {
  int64_t vocab = 256;                  // of source and target
  int64_t context = 64;                 // largest number of ids in a source, and in a target
  int64_t pad = 0;                      // the padding id, after a source's last token
  int64_t decoder_depth = 0;            // blocks of the decoder; 0: transformer.depth, the encoder's number
  bool shared = false;                  // source and target share one table
  bool tied = false;                    // the head uses the target's table as its weight and has no bias
  TransformerOptions transformer = {};  // causal is set here: only the decoder is causal

  // The options with every derived size filled in: decoder_depth and TransformerOptions::complete. Throws if a size is
  // not possible.
  EncoderDecoderOptions complete() const;
};

// The encoder's output for a batch of sources.
struct Encoded {
  Tensor rows;  // [batch, time, stored width]
  Tensor mask;  // [batch, 1, 1, time]: 0 at tokens, -inf at padding, of the parameters' dtype
};

// Ids (i64) [batch, 2 time] with time <= context, sources first and then targets -> logits [batch, time, vocab] for the
// id after each target id. Parameters: tables source (unless shared), target, source_position and target_position (if
// positions are learned), blocks encoder and decoder, encoder_norm, norm, head (unless tied). Rotary embeddings rotate
// queries and keys of self-attention only. Every arrangement works with both stacks. If the first branch reads the
// embeddings without a norm, it does so in both stacks.
class EncoderDecoder : public Module {
 public:
  explicit EncoderDecoder(const EncoderDecoderOptions& options);

  // The two halves. source [batch, time <= context]: throws if a row is only padding (checked on the CPU; on other
  // devices such a row gives NaN). target [batch, time <= context] -> logits [batch, time, vocab]. With a KV cache,
  // `target` holds only the new ids for the same sources: any number if the cache is empty, else one. The logits equal
  // the logits of a pass over all ids up to rounding.
  Encoded encode(const Tensor& source);
  Tensor decode(const Encoded& encoded, const Tensor& target, DecodingCache* cache = nullptr);

  const EncoderDecoderOptions options;

 protected:
  Tensor forward(const Tensor& ids) override;

 private:
  // first: the position of the first id.
  Tensor entered(Embedding& table, Embedding* positions, const Tensor& ids, int64_t first = 0);

  Embedding& target_;
  Embedding& source_;           // target_ if shared
  Embedding* source_position_;  // null unless positions are learned, like target_position_
  Embedding* target_position_;
  TransformerStack& encoder_;
  Connection& encoder_norm_;
  TransformerStack& decoder_;
  Connection& norm_;
  Linear& head_;
};

// How a target begins and ends, and how long it may get.
struct DecodeOptions {
  int64_t begin = 1, end = 2;   // ids
  int64_t length = 0;           // largest number of ids, not counting `begin`; 0: the context
  int64_t beams = 1;            // likeliest prefixes kept at each step; 1: greedy, the most likely id each time
  double length_penalty = 0.6;  // alpha: hypotheses are ranked by log probability / ((5 + length) / 6)^alpha
};

// Beam search for a likely target of each source [batch, time] (Wu et al., 1609.08144, equation 14). Returns the ids
// after `begin`, without `end`.
//
// A hypothesis is a prefix that has ended, or any prefix of `length` ids; the length of an ended one counts `end`. The
// search stops when `beams` hypotheses have ended, at `length` ids, or when no prefix can exceed the best rank any
// more. It returns the hypothesis of the highest rank. More beams can find a lower rank, because a step keeps the
// likeliest prefixes, and their continuations need not be likely.
//
// The model runs in evaluation mode (nn/modes.h), without a graph; several threads may share it. Throws if
// beams is not positive, if length is larger than the model's context, if the penalty is negative or not finite, or if
// a score is NaN.
std::vector<std::vector<int64_t>> translate(EncoderDecoder& model, const Tensor& source,
                                            const DecodeOptions& options = {});

}  // namespace isonorm::nn
