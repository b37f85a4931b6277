#include "nn/transformer.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "core/view.h"
#include "nn/init.h"

namespace isonorm::nn {

TransformerOptions TransformerOptions::complete() const {
  TransformerOptions o = *this;
  check(o.width >= 2 && o.depth >= 0 && o.heads > 0, "transformer: width ", o.width, ", depth ", o.depth, ", heads ",
        o.heads, " are not possible sizes");
  check(o.head_width > 0 || o.width % o.heads == 0, "transformer: width ", o.width, " does not divide into ", o.heads,
        " heads; give head_width");
  if (o.head_width == 0) o.head_width = o.width / o.heads;
  if (o.mlp_width == 0) o.mlp_width = 4 * o.width;
  check(o.head_width > 0 && o.mlp_width > 0, "transformer: head_width ", o.head_width, " and mlp_width ", o.mlp_width,
        " must be positive");
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  check(o.kv_heads > 0 && o.heads % o.kv_heads == 0, "transformer: ", o.heads, " heads cannot share ", o.kv_heads,
        " of keys and values");
  check(o.depth > 0 || !o.connection.bare_entry, "transformer: depth 0 with connections ", o.connection.name,
        ", whose blocks alone have the norms");
  check(!rotates(o.positions) || o.rotary_base > 0, "transformer: rotary base ", o.rotary_base, " is not positive");
  check(o.precision.stream == Precision::full || o.precision.products == Precision::bf16,
        "transformer: the stream's precision is ", name_of(o.precision.stream), ", that of products ",
        name_of(o.precision.products), "; only with bf16 products the stream is bf16");
  return o;
}

void TransformerOptions::initialise(const Module& model) const {
  if (initialisation == Initialisation::by_layer) return;
  constexpr double kMatrices = 0.02;
  const double tables = std::sqrt(0.4), writers = initialisation == Initialisation::scaled && depth > 0
                                                      ? kMatrices / std::sqrt(2 * static_cast<double>(depth))
                                                      : kMatrices;
  const double deviation = dynamic_cast<const BranchOutput*>(&model) ? writers
                           : dynamic_cast<const Linear*>(&model)     ? kMatrices
                                                                     : tables;
  const NoGrad no_grad;
  for (const Parameter& p : model.named_parameters())
    if (p.tensor.rank() == 2 && p.name.find('.') == std::string::npos)
      copy_into(p.tensor, init::normal(p.tensor.shape(), 0, deviation));
  for (const auto& child : model.children())
    if (!connection.initialise || !dynamic_cast<const Block*>(child.get())) initialise(*child);
}

Block::Block(const Stream& stream, const TransformerOptions& o, int64_t index)
    : Block(o, o.connection.block(stream, o.block_norm(), index, o.depth)) {}

Block::Block(const TransformerOptions& o, BlockConnections connections)
    : norm1_(add("norm1", std::move(connections.attention))),
      attn_(add("attn", Attention(norm1_, {.heads = o.heads,
                                           .head_width = o.head_width,
                                           .kv_heads = o.kv_heads,
                                           .causal = o.causal,
                                           .bias = o.bias,
                                           .rotary_base = rotates(o.positions) ? o.rotary_base : 0,
                                           .rotary_halves = o.positions == Positions::rotary_halves,
                                           .branch = o.branch,
                                           .inner_norm = o.inner_norm()}))),
      norm2_(add("norm2", std::move(connections.mlp))),
      mlp_(add("mlp", Mlp(norm2_, {.hidden = o.mlp_width,
                                   .activation = o.activation,
                                   .bias = o.bias,
                                   .branch = o.branch,
                                   .inner_norm = o.inner_norm()}))) {
  if (o.connection.initialise) o.connection.initialise(weights(), o.depth);
}

BlockWeights Block::weights() const {
  const Tensor qkv = detach(attn_.qkv().weight);
  const int64_t inner = attn_.inner_width(), shared = (qkv.size(0) - inner) / 2;
  const auto rows = [&](int64_t first, int64_t n) { return detached::narrow(qkv, 0, first, n); };
  BlockWeights w{rows(0, inner), rows(inner, shared), rows(inner + shared, shared), detach(attn_.proj().weight), {}};
  for (const Linear* linear : mlp_.linears()) w.mlp.push_back(detach(linear->weight));
  return w;
}

void Block::operator()(Residual& r) {
  Scope scope(name());
  norm1_.join(r, attn_(norm1_.rows(r)));
  norm2_.join(r, mlp_(norm2_.rows(r)));
}

Blocks::Blocks(const Stream& stream, const TransformerOptions& o) {
  for (int64_t i = 0; i < o.depth; ++i) {
    TransformerOptions mine = o;
    mine.branch.stochastic_depth *= static_cast<double>(i + 1) / static_cast<double>(o.depth);
    append(Block(stream, mine, i));
  }
}

void Blocks::operator()(Residual& r) {
  Scope scope(name());
  for (Block* b : *this) (*b)(r);
}

}  // namespace isonorm::nn
