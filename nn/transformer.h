// The Transformer: a stack of blocks, in any arrangement of its residual connections.
#pragma once

#include "nn/attention.h"
#include "nn/container.h"
#include "nn/feed_forward.h"
#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// The position encoding of a model: a learned table added to the embeddings; rotary embeddings of pairs of neighbouring
// entries, or of entries half a head apart (rotary_halves); not at all; or scores that fall with the distance (ALiBi).
enum class Positions { learned, rotary, none, rotary_halves, alibi };
inline constexpr const char* kPositionsNames[] = {"learned", "rotary", "none", "rotary_halves", "alibi"};
constexpr const char* name_of(Positions p) { return kPositionsNames[static_cast<size_t>(p)]; }
constexpr bool rotates(Positions p) { return p == Positions::rotary || p == Positions::rotary_halves; }

// The initial distributions of matrices and tables. Vectors keep their layers' initial values. In blocks that the
// arrangement initializes, its values stay.
//
//   by_layer  matrices uniform in +-1/sqrt(in), tables standard normal
//   normal    normal with mean 0; standard deviation 0.02 for matrices, sqrt(2/5) for tables (as in LLaMA models of
//             2506.22049; a table that is not small compared with the branches: Takase et al., 2312.16903)
//   scaled    like normal, but 0.02 / sqrt(2 depth) for the output matrices of branches (GPT-2; scale_pre in
//             2506.22049)
//
// If the head is tied, tables have standard deviation 0.02 in all three, as in GPT-2 (Radford et al. 2019;
// initializer_range of transformers' GPT2Config): with larger ones the first loss exceeds ln(vocab).
enum class Initialisation { by_layer, normal, scaled };
inline constexpr const char* kInitialisationNames[] = {"by_layer", "normal", "scaled"};
constexpr const char* name_of(Initialisation i) { return kInitialisationNames[static_cast<size_t>(i)]; }

// Width, attention's inner width heads x head_width and mlp_width are three independent sizes.
struct TransformerOptions {
  int64_t width = 64;  // of the residual stream; may be odd
  int64_t depth = 4;   // blocks
  int64_t heads = 4;
  int64_t head_width = 0;  // 0: width / heads, which must divide
  int64_t kv_heads = 0;    // key/value heads, each used by heads / kv_heads query heads (GQA, 2305.13245); 0: heads
  int64_t mlp_width = 0;   // 0: 4 width
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  double rotary_base = 10000;         // base of rotary embeddings
  double rotary_share = 1;            // share of a head's entries that are rotated, the leading ones (GPT-NeoX: 0.25)
  NormKind qk_norm = NormKind::none;  // norm of each head's queries and keys: layer, rms or none
  bool parallel = false;              // x + attention(norm1(x)) + mlp(norm2(x)) (GPT-NeoX); requires pre_ln
  bool shared_norm = false;           // parallel branches both read norm1 (GPT-J, Phi, Falcon)
  bool causal = false;
  bool affine = false;    // learned gain and bias in the norms
  bool norm_bias = true;  // false: affine norms have only a gain
  bool folded = false;  // norms have no gain if it is folded into the linear layers that read them (conversion does so)
  bool scaled_gains = false;  // gains of norm1, cross_norm, norm2 of block l = 1, 2, ... begin at 1/sqrt(l), not at 1
  bool bias = true;           // biases of the linear maps
  bool qkv_bias = false;      // biases for queries, keys and values even if bias is false (Qwen2)
  NormKind norm = NormKind::layer;  // or rms, or none: branches and head read the residual stream itself
  double eps = 1e-5;                // of every norm
  bool final_norm = true;           // false: the head reads the residual stream itself. No effect in post_ln, deepnorm
                                    // and deeppost_gpas, whose last sub-layer ends with a norm
  BranchOptions branch = {};  // dropout, stochastic depth (its probability grows linearly over the blocks), layer scale
  Arrangement connection = kPreLn;
  MixedPrecision precision = {};  // with f32 parameters: what is computed and stored in bf16
  Initialisation initialisation = Initialisation::by_layer;

  // The options with every derived size filled in, and with the default for an option that has no effect (final_norm
  // if the last sub-layer ends with a norm, rotary_base and rotary_share without rotary positions), so that comparing
  // the options of two models does not report it. Throws if sizes are not possible (for example, if heads does not divide
  // width) or if options contradict each other (for example, a bf16 residual stream with products in full precision).
  TransformerOptions complete() const;
  ConnectionOptions block_norm() const {
    return {.eps = eps, .affine = affine, .bias = norm_bias, .kind = norm, .precision = precision, .folded = folded};
  }
  // Options of the norms inside the branches, if the arrangement has such norms.
  std::optional<NormLayerOptions> inner_norm() const {
    return connection.inner_norms ? std::optional(NormLayerOptions{.eps = eps, .affine = affine, .bias = norm_bias})
                                  : std::nullopt;
  }
  ConnectionOptions last_norm() const {
    ConnectionOptions o = block_norm();
    if (!final_norm) o.kind = NormKind::none;
    return o;
  }
  int64_t rotary_width() const { return static_cast<int64_t>(static_cast<double>(head_width) * rotary_share); }
  MultiheadAttentionOptions attention() const;
  // Draws the initial matrices and tables of a model, unless they keep their layers' distributions. tied: the head's
  // weight is an embedding table.
  void initialise(const Module& model, bool tied = false) const;
};

// Rows first, ..., first + n - 1 of a position table: for n ids, the first at position `first`.
Tensor positions_from(Embedding& table, int64_t first, int64_t n);

// Inputs of attention in addition to the rows. Masks are added to the scores; an undefined mask hides nothing.
struct Attended {
  Tensor mask = {};                        // broadcasts to [batch, heads, time, time]
  Tensor encoded = {}, encoded_mask = {};  // decoder: the encoder's rows, [batch, heads, time, source]
  DecodingCache* cache = nullptr;          // KV cache of a causal stack: the rows are only the new ones
};

// Attention, then the MLP, each with its residual connection: in pre_ln, x <- x + attention(norm1(x)); x <- x +
// mlp(norm2(x)). A decoder's block has cross-attention to the encoder's rows between them. Throws if a decoder's
// arrangement has no connection for a third sub-layer, or if a decoder's branches are parallel.
//
// With pre_ln the block is torch.nn.TransformerEncoderLayer with norm_first; with post_ln it is the one without
// (tests/nn/torch_modules_test.cpp). As a module it maps rows to rows, [batch, time, width] both:
//   nn::TransformerBlock block({.width = 64, .heads = 4, .affine = true});
//   const Tensor y = block(x);
class TransformerBlock : public Module {
 public:
  explicit TransformerBlock(const TransformerOptions& options, const BlockPlace& place = {});
  TransformerBlock rebuild() const { return TransformerBlock(options_, place_); }
  using Module::operator();
  // cache: this block's part of attended.cache, or null.
  void operator()(Residual& r, const Attended& attended = {}, BlockCache* cache = nullptr);

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  TransformerBlock(const TransformerOptions& options, const BlockPlace& place, BlockConnections connections);
  BlockWeights weights() const;

  const TransformerOptions options_;
  const BlockPlace place_;
  Connection& norm1_;
  MultiheadAttention& attn_;
  Connection* cross_norm_;  // null except in a decoder, like cross_
  CrossAttention* cross_;
  Connection& norm2_;
  FeedForward& mlp_;
};

// `depth` blocks, run in order: a model's only stack, or one of two stacks; the other has `other_depth` blocks. No norm
// follows the last block. Like a block, it maps rows to rows as a module.
class TransformerStack : public ModuleList<TransformerBlock> {
 public:
  explicit TransformerStack(const TransformerOptions& options, Stack stack = Stack::alone, int64_t other_depth = 0);
  TransformerStack rebuild() const;
  using Module::operator();
  void operator()(Residual& r, const Attended& attended = {});
  // Activation checkpointing: keeps only the input of each block and computes the block again in the backward pass
  // (autograd/checkpoint.h).
  void recompute(bool on) { recompute_ = on; }
  // Sequence parallelism: the blocks run on own(x), a rank's share of the rows x, and `whole` maps their result
  // back.
  void share_rows(Connection::Rows own, Connection::Rows whole) { own_ = std::move(own), whole_ = std::move(whole); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  const TransformerOptions options_;
  const Stack stack_;
  const int64_t other_depth_;
  bool recompute_ = false;
  Connection::Rows own_, whole_;
};

// Calls TransformerStack::recompute() on every stack in the model.
void recompute(Module& model, bool on = true);

}  // namespace isonorm::nn
