// The encoder-decoder Transformer (Vaswani et al., 1706.03762): a stack that reads the source, and one that writes the
// target a token at a time, reading what the first one made of the source.
#pragma once

#include "nn/transformer.h"

namespace isonorm::nn {

struct EncoderDecoderOptions {
  int64_t vocab = 256;                  // of source and target
  int64_t source = 64;                  // ids that a source has at most; shorter ones end with `pad`
  int64_t target = 64;                  // the same of targets
  int64_t pad = 0;                      // the id of no token
  int64_t decoder_depth = 0;            // blocks of the decoder; 0: transformer.depth, which is the encoder's
  bool tied = false;                    // one table for source, target and head, without a bias
  TransformerOptions transformer = {};  // causal in the decoder alone, whatever it says
};

// What the encoder made of a batch of sources.
struct Encoded {
  Tensor rows;  // [batch, time, stored width]
  Tensor mask;  // [batch, 1, 1, time]: 0 at tokens, -inf at padding, of the parameters' dtype
};

// Ids (i64) of sources [batch, source] and of targets [batch, target], in one tensor [batch, source + target], ->
// logits [batch, target, vocab] of what follows each target id. Positions of rotary kind turn queries and keys of
// self-attention alone. Every connection goes with both stacks, which have streams of the same form; those that read
// embeddings bare do so in both.
class EncoderDecoder : public Module {
 public:
  explicit EncoderDecoder(const EncoderDecoderOptions& options);
  Tensor forward(const Tensor& ids) override;

  // The two halves. source [batch, time <= options.source]: throws where a row is nothing but padding (seen on the CPU;
  // elsewhere such a row gives NaN). target [batch, time <= options.target].
  Encoded encode(const Tensor& source);
  Tensor decode(const Encoded& encoded, const Tensor& target);

  const EncoderDecoderOptions options;

 private:
  Tensor entered(Embedding& table, Embedding* positions, const Tensor& ids, int64_t most);
  Mapped head() const;

  Stream stream_;
  Embedding& source_;
  Embedding& target_;           // source_ where tied
  Embedding* source_position_;  // null where positions are not learned
  Embedding* target_position_;
  Blocks& encoder_;
  Connection& encoder_norm_;
  Blocks& decoder_;
  Connection& norm_;
  Linear* head_;  // null where tied
};

// What a decoder may begin and end with, and how far it goes.
struct DecodeOptions {
  int64_t begin = 1, end = 2;   // ids
  int64_t length = 64;          // ids at most, `begin` not counted; at most options.target
  int64_t beams = 1;            // 1: greedy, the most likely id each time
  double length_penalty = 0.6;  // alpha: beams are ranked by log probability / ((5 + length) / 6)^alpha
};

// The target that the model finds likely for each source [batch, time], by beam search (Wu et al., 1609.08144, equation
// 14): the ids behind `begin` up to and without `end`. In evaluation mode, without a graph. Throws where beams or length
// is not positive, or length passes the model's targets.
std::vector<std::vector<int64_t>> translate(EncoderDecoder& model, const Tensor& source,
                                            const DecodeOptions& options = {});

}  // namespace isonorm::nn
