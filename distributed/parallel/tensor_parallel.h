// Tensor parallelism: ranks share the heads of attention and the hidden units of feed-forward layers (Shoeybi et al.,
// Megatron-LM, 1909.08053, section 3). Optionally they also share the rows between these layers (sequence parallelism;
// Korthikanti et al., 2205.05198).
//
// The stream's maps act on the stream's axis of a weight, which is never cut. Hence every form works and needs no
// additional communication; in the compressed forms, rows are sent with d - 1 numbers.
//
//   nn::Gpt part = streams::make<nn::Gpt>(part_of(options, ranks), {.form = Form::crms_norm});
//   parallel::TensorParallel split(part, options.transformer, ranks);
//   split.load(whole);                                  // a state_dict() of the whole model
//   optim::AdamW adamw(part.parameters());
//   training::Step step(part, adamw, training::cross_entropy_of, {.limits = {.norm = 1}, .parts = &split});
#pragma once

#include "nn/transformer.h"
#include "distributed/parallel/parts.h"

namespace isonorm::parallel {

// The options of a rank's part: query heads, key/value heads and hidden units divided by the number of ranks. Throws if
// a number does not divide, and on options that need all heads or hidden units in one place: inner norms, ALiBi, layer
// scale.
nn::TransformerOptions part_of(nn::TransformerOptions whole, const distributed::Group& group);
template <class Options> Options part_of(Options whole, const distributed::Group& group) {
  whole.transformer = part_of(whole.transformer, group);
  return whole;
}

struct TensorParallelOptions {
  bool rows = false;  // sequence parallelism: ranks share the rows along dimension 1 (time), which they must divide
};

// Turns `part`, a model with the options part_of(whole), into this rank's part. All ranks run it on the same batch.
// Logits, and the gradients of parameters that are not cut, have the same bits on all ranks. The ranks draw the same
// random numbers; with `rows`, blocks may not use dropout. Throws on cross-attention, and if the layers do not have the
// sizes of a part.
class TensorParallel : public Parts {
 public:
  TensorParallel(nn::Module& part, const nn::TransformerOptions& whole, distributed::Group& group,
                 TensorParallelOptions options = {});

 private:
  using Rows = nn::Connection::Rows;
  void cut_layers(nn::TransformerOptions whole);
  void share_block(nn::TransformerBlock& block, const std::string& path, bool rows, const Rows& enter,
                   const Rows& leave);
};

}  // namespace isonorm::parallel
