// The encoder-decoder Transformer (Vaswani et al., 1706.03762): a stack that reads the source, and one that writes the
// target a token at a time, reading what the first one made of the source.
#pragma once

#include "nn/transformer.h"

namespace isonorm::nn {

struct EncoderDecoderOptions {
  int64_t vocab = 256;        // of source and target
  int64_t context = 64;       // ids that a source or a target has at most
  int64_t pad = 0;            // the id of no token, behind a source's last one
  int64_t decoder_depth = 0;  // blocks of the decoder; 0: transformer.depth, which is the encoder's
  bool shared = false;        // source and target have one table
  bool tied = false;          // the head reads with the target's table instead of a weight and bias of its own
  TransformerOptions transformer = {};  // causal in the decoder alone, whatever it says

  // The same with every derived size: decoder_depth and TransformerOptions::complete. Throws if a size is not possible.
  EncoderDecoderOptions complete() const;
};

// What the encoder made of a batch of sources.
struct Encoded {
  Tensor rows;  // [batch, time, stored width]
  Tensor mask;  // [batch, 1, 1, time]: 0 at tokens, -inf at padding, of the parameters' dtype
};

// Ids (i64) [batch, 2 time] with time <= context, sources first and then targets -> logits [batch, time, vocab] of the id that
// follows each target id. Parameters: tables source (not where shared), target, source_position and target_position
// (where positions are learned), blocks encoder and decoder, encoder_norm, norm, head (not where tied). Rotary positions
// turn queries and keys of self-attention alone. Every connection goes with both stacks, which have streams of the same
// form; those that read embeddings bare do so in both.
class EncoderDecoder : public Module {
 public:
  explicit EncoderDecoder(const EncoderDecoderOptions& options);

  // The two halves. source [batch, time <= context]: throws where a row is nothing but padding (seen on the CPU;
  // elsewhere such a row gives NaN). target [batch, time <= context] -> logits [batch, time, vocab]. With a cache, target are
  // the ids behind those that it has seen, one where it has seen some, of the same sources: logits are to rounding those of
  // all ids at once.
  Encoded encode(const Tensor& source);
  Tensor decode(const Encoded& encoded, const Tensor& target, DecodingCache* cache = nullptr);

  const EncoderDecoderOptions options;

 protected:
  Tensor forward(const Tensor& ids) override;

 private:
  // first: the position of the first id.
  Tensor entered(Embedding& table, Embedding* positions, const Tensor& ids, int64_t first = 0);

  Embedding& target_;
  Embedding& source_;           // target_ where shared
  Embedding* source_position_;  // null where positions are not learned
  Embedding* target_position_;
  TransformerStack& encoder_;
  Connection& encoder_norm_;
  TransformerStack& decoder_;
  Connection& norm_;
  Linear& head_;
};

// What a decoder may begin and end with, and how far it goes.
struct DecodeOptions {
  int64_t begin = 1, end = 2;   // ids
  int64_t length = 0;           // ids at most, `begin` not counted; 0: the context
  int64_t beams = 1;            // likeliest prefixes that each step keeps; 1: greedy, the most likely id each time
  double length_penalty = 0.6;  // alpha: hypotheses are ranked by log probability / ((5 + length) / 6)^alpha
};

// Beam search for a likely target of each source [batch, time] (Wu et al., 1609.08144, equation 14). Returns the ids
// after `begin`, without `end`.
//
// A hypothesis is a prefix that has ended, or any prefix of `length` ids; the length of an ended one counts `end`. The
// search stops when `beams` hypotheses have ended, at `length` ids, or when no prefix can pass the best hypothesis any
// more, and returns the hypothesis of the highest rank. More beams can find a lower rank: a step keeps the likeliest
// prefixes, and their continuations need not be likely.
//
// The model runs in evaluation mode (nn/evaluation_mode.h), without a graph; several threads may share it. Throws if beams
// is not positive, length is larger than the model's context, the penalty is negative or not finite, or a score is NaN.
std::vector<std::vector<int64_t>> translate(EncoderDecoder& model, const Tensor& source,
                                            const DecodeOptions& options = {});

}  // namespace isonorm::nn
