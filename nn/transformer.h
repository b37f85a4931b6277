// The one Transformer: a stack of blocks, in any arrangement of its residual connections.
#pragma once

#include "nn/attention.h"
#include "nn/container.h"
#include "nn/feed_forward.h"
#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

// How tokens learn where they stand: a table added to the stream, queries and keys rotated in pairs of neighbouring
// entries or of entries half a head apart, not at all, or by scores that fall with the distance (ALiBi).
enum class Positions { learned, rotary, none, rotary_halves, alibi };
inline constexpr const char* kPositionsNames[] = {"learned", "rotary", "none", "rotary_halves", "alibi"};
constexpr const char* name_of(Positions p) { return kPositionsNames[static_cast<size_t>(p)]; }
constexpr bool rotates(Positions p) { return p == Positions::rotary || p == Positions::rotary_halves; }

// The initial distributions of matrices and tables. Vectors begin as their layers say. Matrices that the connections
// initialise keep what the connections drew.
//
//   by_layer  matrices uniform in +-1/sqrt(in), tables standard normal
//   normal    normal with mean 0; standard deviation 0.02 for matrices, sqrt(2/5) for tables (as in LLaMA models of
//             2506.22049; a table that is not small compared with the branches: Takase et al., 2312.16903)
//   scaled    like normal, but 0.02 / sqrt(2 depth) for matrices that write to the stream (GPT-2; scale_pre in
//             2506.22049)
//
// If the head is tied, tables have standard deviation 0.02 in all three, as in GPT-2 (Radford et al. 2019;
// initializer_range of transformers' GPT2Config): with larger ones the first loss exceeds ln(vocab).
enum class Initialisation { by_layer, normal, scaled };
inline constexpr const char* kInitialisationNames[] = {"by_layer", "normal", "scaled"};
constexpr const char* name_of(Initialisation i) { return kInitialisationNames[static_cast<size_t>(i)]; }

// Width, attention's inner width heads x head_width and mlp_width are three independent sizes.
struct TransformerOptions {
  int64_t width = 64;  // of the residual stream; odd ones too
  int64_t depth = 4;   // blocks
  int64_t heads = 4;
  int64_t head_width = 0;  // 0: width / heads, which must divide
  int64_t kv_heads = 0;   // heads of keys and values, each shared by heads / kv_heads of queries (2305.13245); 0: heads
  int64_t mlp_width = 0;  // 0: 4 width
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  double rotary_base = 10000;         // of rotary positions
  double rotary_share = 1;            // of a head's entries that they turn, the first ones (GPT-NeoX: 0.25)
  NormKind qk_norm = NormKind::none;  // of each head's queries and keys: layer, rms or none
  bool parallel = false;              // x + attention(norm1(x)) + mlp(norm2(x)); pre_ln alone (GPT-NeoX)
  bool shared_norm = false;           // of parallel branches: both read norm1 (GPT-J, Phi, Falcon)
  bool causal = false;
  bool affine = false;        // learned gain and bias in the norms
  bool norm_bias = true;      // false: of affine norms the gain alone
  bool folded = false;        // gains that readers can take up are in them: as a conversion leaves it
  bool scaled_gains = false;  // gains of what the branches of block l = 1, 2, ... read begin at 1/sqrt(l), not at 1
  bool bias = true;           // biases in the linear maps
  bool qkv_bias = false;      // of queries, keys and values, even where there are no others (Qwen2)
  NormKind norm = NormKind::layer;  // or rms, or none: the branches and the head read the bare stream
  double eps = 1e-5;                // of every norm
  bool final_norm = true;     // false: the head reads the bare stream; without meaning in post_ln and deepnorm, whose
                              // last sub-layer ends with a norm
  BranchOptions branch = {};  // dropout, stochastic depth (its probability grows linearly over the blocks), layer scale
  Arrangement connection = kPreLn;
  MixedPrecision precision = {};  // of f32 parameters: what is computed and kept in bf16
  Initialisation initialisation = Initialisation::by_layer;

  // The same with the zeros replaced. Throws where a size is not positive, width does not divide by heads, the norm is
  // none of the three, or the stream is of bf16 and the products are not.
  TransformerOptions complete() const;
  ConnectionOptions block_norm() const {
    return {.eps = eps, .affine = affine, .bias = norm_bias, .kind = norm, .precision = precision, .folded = folded};
  }
  // Of the norms inside of the branches, where the arrangement has them.
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
  // Draws the initial matrices and tables of a model, unless they keep the distributions of their layers. tied: the
  // head reads with an embedding table.
  void initialise(const Module& model, bool tied = false) const;
};

// Rows first, first + 1, ... of a table of positions, for n ids the first of which is at position `first`.
Tensor positions_from(Embedding& table, int64_t first, int64_t n);

// What attention sees beside the rows. Masks are added to the scores; undefined ones hide nothing.
struct Attended {
  Tensor mask = {};                        // broadcasts to [batch, heads, time, time]
  Tensor encoded = {}, encoded_mask = {};  // of a decoder: the encoder's rows, [batch, heads, time, source]
  DecodingCache* cache = nullptr;          // of a causal stack: the rows are those behind the ones that it has seen
};

// Attention, then the MLP, each on its connection: x <- x + attention(norm1(x)); x <- x + mlp(norm2(x)) in pre_ln; in a
// decoder's block with attention to the encoder's rows between them. Throws where there is no connection for a third
// sub-layer, and where it has one and the two are parallel.
//
// A pre_ln block is torch.nn.TransformerEncoderLayer with norm_first, one of post_ln that without (tests/nn/torch_modules_test.cpp).
// As a module it takes rows and gives rows, [batch, time, width] both:
//   nn::TransformerBlock block({.width = 64, .heads = 4, .affine = true});
//   const Tensor y = block(x);
class TransformerBlock : public Module {
 public:
  explicit TransformerBlock(const TransformerOptions& options, const BlockPlace& place = {});
  TransformerBlock rebuild() const { return TransformerBlock(options_, place_); }
  using Module::operator();
  // cache: this block's of attended.cache, or null.
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
  Connection* cross_norm_;  // null but in a decoder
  CrossAttention* cross_;
  Connection& norm2_;
  FeedForward& mlp_;
};

// `depth` blocks, run in order: a model's only stack, or one of two with `other_depth` blocks in the other. No norm follows
// the last block. As a module from rows to rows, as a block is.
class TransformerStack : public ModuleList<TransformerBlock> {
 public:
  explicit TransformerStack(const TransformerOptions& options, Stack stack = Stack::alone, int64_t other_depth = 0);
  TransformerStack rebuild() const;
  using Module::operator();
  void operator()(Residual& r, const Attended& attended = {});
  // Of what a block computes a backward keeps its rows alone, and runs it once more (autograd/checkpoint.h).
  void recompute(bool on) { recompute_ = on; }
  // The blocks run on own(x) of the stream's rows, and `whole` of what they give goes on.
  void share_rows(Norm::Rows own, Norm::Rows whole) { own_ = std::move(own), whole_ = std::move(whole); }

 protected:
  Tensor forward(const Tensor& x) override;

 private:
  const TransformerOptions options_;
  const Stack stack_;
  const int64_t other_depth_;
  bool recompute_ = false;
  Norm::Rows own_, whole_;
};

// TransformerStack::recompute() of all stacks in the model.
void recompute(Module& model, bool on = true);

}  // namespace isonorm::nn
