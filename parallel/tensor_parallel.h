// Tensor parallelism: ranks share the heads of attention and the hidden entries of feed-forwards (Shoeybi et al., Megatron-LM, 1909.08053,
// section 3), and, where asked for, the rows that stand between them (sequence parallelism; Korthikanti et al., 2205.05198).
//
// The maps of a stream act on the stream's axis of a weight, which no rank shares, so every form goes with it and adds nothing; in the
// compressed ones what is sent has d - 1 numbers a row.
//
//   nn::Gpt part = streams::make<nn::Gpt>(part_of(options, ranks), {.form = Form::crms_norm});
//   parallel::TensorParallel split(part, options.transformer, ranks);
//   split.load(whole);                                  // a state_dict() of the whole model
//   optim::AdamW adamw(part.parameters());
//   training::Step step(part, adamw, training::cross_entropy_of, {.limits = {.norm = 1}, .parts = &split});
#pragma once

#include "nn/transformer.h"
#include "parallel/parts.h"

namespace isonorm::parallel {

// The options of a rank's part: heads, heads of keys and values, and hidden entries divided by the ranks. Throws where one of them does not
// divide, and on what sees heads or hidden entries of more than one rank: inner norms, ALiBi; layer scale.
nn::TransformerOptions part_of(nn::TransformerOptions whole, const distributed::Group& group);
template <class Options> Options part_of(Options whole, const distributed::Group& group) {
  whole.transformer = part_of(whole.transformer, group);
  return whole;
}

struct TensorParallelOptions {
  bool rows = false;  // ranks share the rows of the stream, too, along dimension 1: a batch's time, which they divide
};

// Makes a model whose options are part_of() those of `whole` a part of it: every rank runs it on the same batch and has the same logits and
// the same gradients of what no rank has a part of, bit by bit. The ranks draw the same numbers at
// random; with `rows` none may be drawn in the blocks. Throws on a decoder of two stacks, and on a model that is not such a part.
class TensorParallel : public Parts {
 public:
  TensorParallel(nn::Module& part, const nn::TransformerOptions& whole, distributed::Group& group,
                 TensorParallelOptions options = {});

 private:
  using Rows = nn::Norm::Rows;
  void cut_layers(nn::TransformerOptions whole);
  void share_block(nn::TransformerBlock& block, const std::string& path, bool rows, const Rows& enter,
                   const Rows& leave);
};

}  // namespace isonorm::parallel
