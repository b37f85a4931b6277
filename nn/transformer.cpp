#include "nn/transformer.h"

#include <array>
#include <cmath>
#include <memory>

#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "nn/init.h"
#include "nn/modes.h"
#include "nn/module_scope.h"
#include "nn/residual/post_norm.h"

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
  check(o.depth > 0 || !o.connection.reads_embeddings, "transformer: depth 0 with connections ", o.connection.name,
        ", which have norms only in their blocks");
  check(o.norm == NormKind::layer || o.norm == NormKind::rms || o.norm == NormKind::none, "transformer: its norms are ",
        name_of(o.norm), ", expected layer_norm, rms_norm or none");
  check(!o.scaled_gains || o.affine, "transformer: scaled gains need affine norms");
  check(!rotates(o.positions) || (o.rotary_width() > 0 && o.rotary_width() % 2 == 0),
        "transformer: rotary positions rotate pairs of entries, head_width ", o.head_width, " gives ", o.rotary_width(),
        " entries to rotate");
  check(!rotates(o.positions) || o.rotary_base > 0, "transformer: rotary base ", o.rotary_base, " is not positive");
  check(o.positions != Positions::alibi || o.precision.products == Precision::full,
        "transformer: ALiBi's scores are too coarse in bf16");
  check(!o.parallel || o.connection == kPreLn, "transformer: parallel branches with connections ", o.connection.name,
        ", expected pre_ln");
  check(!o.shared_norm || o.parallel, "transformer: a shared norm needs parallel branches");
  check(o.precision.residual == Precision::full || o.precision.products == Precision::bf16,
        "transformer: the precision of the residual stream is ", name_of(o.precision.residual),
        ", the precision of products ", name_of(o.precision.products), "; a bf16 residual stream needs bf16 products");
  if (o.connection.last == bare_last) o.final_norm = true;
  if (const TransformerOptions defaults; !rotates(o.positions))
    o.rotary_base = defaults.rotary_base, o.rotary_share = defaults.rotary_share;
  return o;
}

MultiheadAttentionOptions TransformerOptions::attention() const {
  return {.heads = heads,
          .head_width = head_width,
          .kv_heads = kv_heads,
          .causal = causal,
          .bias = bias,
          .qkv_bias = qkv_bias,
          .alibi = positions == Positions::alibi,
          .rotary_base = rotates(positions) ? rotary_base : 0,
          .rotary_halves = positions == Positions::rotary_halves,
          .rotary_width = rotates(positions) ? rotary_width() : 0,
          .qk_norm = qk_norm,
          .qk_norm_options = {.eps = eps, .affine = affine, .bias = norm_bias && qk_norm == NormKind::layer},
          .branch = branch,
          .inner_norm = inner_norm()};
}

void TransformerOptions::initialise(const Module& model, bool tied) const {
  const bool by_layer = initialisation == Initialisation::by_layer;
  if (by_layer && !tied) return;
  constexpr double kMatrices = 0.02;
  const double tables = tied ? kMatrices : std::sqrt(0.4);
  const double writers = initialisation == Initialisation::scaled && depth > 0
                             ? kMatrices / std::sqrt(2 * static_cast<double>(depth))
                             : kMatrices;
  const bool matrix = dynamic_cast<const Linear*>(&model);
  const double deviation = dynamic_cast<const BranchOutput*>(&model) ? writers : matrix ? kMatrices : tables;
  const NoGrad no_grad;
  for (const NamedParameter& p : model.named_parameters())
    if (p.tensor.rank() == 2 && p.name.find('.') == std::string::npos && !(by_layer && matrix))
      copy_into(p.tensor, init::normal(p.tensor.shape(), 0, deviation));
  for (const auto& child : model.children()) {
    TransformerOptions of = *this;
    if (const auto* stack = dynamic_cast<const TransformerStack*>(child.get()))
      of.depth = std::ssize(stack->children());
    if (!connection.initialise || !dynamic_cast<const TransformerBlock*>(child.get())) of.initialise(*child, tied);
  }
}

Tensor positions_from(Embedding& table, int64_t first, int64_t n) {
  const Tensor rows = table.first(first + n);
  return first == 0 ? rows : narrow(rows, 0, first, n);
}

TransformerBlock::TransformerBlock(const TransformerOptions& o, const BlockPlace& place)
    : TransformerBlock(o, place, o.connection.block(o.width, o.block_norm(), place)) {
  check(place.stack != Stack::decoder || cross_, "block: connections ", o.connection.name,
        " have no cross-attention for a decoder");
  check(!options_.parallel || !cross_, "block: a decoder cannot have parallel branches");
}

TransformerBlock::TransformerBlock(const TransformerOptions& o, const BlockPlace& place, BlockConnections c)
    : options_(o),
      place_(place),
      norm1_(add("norm1", std::move(c.attention))),
      attn_(add("attn", MultiheadAttention(o.width, o.attention()))),
      cross_norm_(c.cross ? &add("cross_norm", std::move(c.cross)) : nullptr),
      cross_(cross_norm_ ? &add("cross", CrossAttention(o.width, o.width, o.attention())) : nullptr),
      norm2_(o.shared_norm ? norm1_ : add("norm2", std::move(c.mlp))),
      mlp_(add("mlp", FeedForward(o.width, {.hidden = o.mlp_width,
                                            .activation = o.activation,
                                            .bias = o.bias,
                                            .branch = o.branch,
                                            .inner_norm = o.inner_norm()}))) {
  if (o.connection.initialise) o.connection.initialise(weights(), place);
  if (!o.scaled_gains) return;
  const NoGrad no_grad;
  for (const Connection* c : {&norm1_, cross_norm_, &norm2_})
    if (c && c->weight.defined())
      copy_into(c->weight, full(c->weight.shape(), 1 / std::sqrt(static_cast<double>(place.index + 1))));
}

BlockWeights TransformerBlock::weights() const {
  BlockWeights w{.attention = attn_.weights(), .mlp = {}};
  if (cross_) w.cross = cross_->weights();
  for (const Linear* linear : mlp_.linears()) w.mlp.push_back(detach(linear->weight));
  return w;
}

void TransformerBlock::operator()(Residual& r, const Attended& attended, BlockCache* cache) {
  const ModuleScope scope(*this);
  const auto add_branches = [&] {
    const Tensor rows = norm1_.rows(r);
    const Tensor same = !options_.parallel ? Tensor() : &norm2_ == &norm1_ ? rows : norm2_.rows(r);
    norm1_.join(r, attn_(rows, attended.mask, cache ? &cache->own : nullptr));
    if (cross_)
      cross_norm_->join(r, (*cross_)(cross_norm_->rows(r), attended.encoded, attended.encoded_mask,
                                     cache ? &cache->encoded : nullptr));
    norm2_.join(r, mlp_(options_.parallel ? same : norm2_.rows(r)));
  };
  if (!has_hooks()) return add_branches();
  const Tensor before = r.settle();
  r.sum = with_hooks(before, [&](const Tensor& x) {
    r.sum = x;
    add_branches();
    return r.settle();
  });
}

Tensor TransformerBlock::forward(const Tensor& x) {
  Residual r = x;
  (*this)(r);
  return r.settle();
}

TransformerStack::TransformerStack(const TransformerOptions& o, Stack stack, int64_t other_depth)
    : options_(o), stack_(stack), other_depth_(other_depth) {
  for (int64_t i = 0; i < o.depth; ++i) {
    TransformerOptions mine = o;
    mine.branch.stochastic_depth *= static_cast<double>(i + 1) / static_cast<double>(o.depth);
    append(TransformerBlock(mine, {.index = i, .depth = o.depth, .stack = stack, .other_depth = other_depth}));
  }
}

TransformerStack TransformerStack::rebuild() const {
  TransformerStack made(options_, stack_, other_depth_);
  made.recompute(recompute_);
  return made;
}

namespace {

void recomputed(TransformerBlock& block, Residual& r, const Attended& attended) {
  const auto has =
      std::make_shared<std::vector<bool>>();  // for each part of the residual after the block: is it defined
  const auto parts = [](Residual& x) { return std::array<Tensor*, 3>{&x.sum, &x.pending, &x.dual}; };
  const std::vector<Tensor> out = checkpoint(
      [&block, attended, has, parts, evaluates = EvaluationMode::is_on()](const std::vector<Tensor>& in) {
        const EvaluationMode mode(evaluates);
        Residual x{in[0], in[1]};
        x.dual = in[2];
        Attended same = attended;
        same.encoded = in[3];
        block(x, same);
        has->clear();
        std::vector<Tensor> out;
        for (const Tensor* part : parts(x))
          if (has->push_back(part->defined()); part->defined()) out.push_back(*part);
        return out;
      },
      {r.sum, r.pending, r.dual, attended.encoded});
  size_t i = 0, next = 0;
  for (Tensor* part : parts(r)) *part = (*has)[i++] ? out[next++] : Tensor();
}

}  // namespace

void TransformerStack::operator()(Residual& r, const Attended& attended) {
  const ModuleScope scope(*this);
  const auto mapped = [&](const Connection::Rows& map) {
    if (map) r.each([&](Tensor& x) { x = map(x); });
  };
  mapped(own_);
  size_t i = 0;
  for (TransformerBlock* b : *this)
    recompute_ && !attended.cache ? recomputed(*b, r, attended)
                                  : (*b)(r, attended, attended.cache ? &attended.cache->of(i++) : nullptr);
  if (whole_) r.settle();
  mapped(whole_);
}

Tensor TransformerStack::forward(const Tensor& x) {
  Residual r = x;
  (*this)(r);
  return r.settle();
}

void recompute(Module& model, bool on) {
  for (const auto& [_, m] : model.named_modules())
    if (auto* stack = dynamic_cast<TransformerStack*>(m)) stack->recompute(on);
}

}  // namespace isonorm::nn
