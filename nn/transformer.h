// The one Transformer: a stack of pre-normalised blocks on a stream of any form.
#pragma once

#include "nn/attention.h"
#include "nn/container.h"
#include "nn/mlp.h"

namespace isonorm::nn {

struct TransformerOptions {
  int64_t width = 64;  // of the Pre-LN model's residual stream
  int64_t depth = 4;   // blocks
  int64_t heads = 4;
  int64_t head_width = 0;  // 0: width / heads, which must divide
  int64_t mlp_width = 0;   // 0: 4 width
  Activation activation = Activation::gelu;
  bool causal = false;
  bool affine = false;  // learned gain and bias in the norms
  bool bias = true;     // biases in the linear maps
  double eps = 1e-5;    // of every norm
  StreamForm stream = StreamForm::layer_norm;
  StreamStorage storage = StreamStorage::raw;

  // The same with the zeros replaced. Throws where a size is not positive, or width does not divide by heads.
  TransformerOptions complete() const;
};

// x <- x + attention(norm1(x)); x <- x + mlp(norm2(x)).
class Block : public Module {
 public:
  Block(const Stream& stream, const TransformerOptions& options);
  void operator()(Residual& r);

 private:
  StreamNorm& norm1_;
  Attention& attn_;
  StreamNorm& norm2_;
  Mlp& mlp_;
};

// `depth` blocks, run in order.
class Blocks : public ModuleList<Block> {
 public:
  Blocks(const Stream& stream, const TransformerOptions& options);
  void operator()(Residual& r);
};

}  // namespace isonorm::nn
