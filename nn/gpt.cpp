#include "nn/gpt.h"

#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"

namespace isonorm::nn {

GptOptions GptOptions::complete() const {
  GptOptions o = *this;
  check(o.vocab > 0 && o.context > 0, "gpt: vocabulary ", o.vocab, " and context ", o.context, " must be positive");
  check(o.position_offset >= 0, "gpt: the offset of positions is ", o.position_offset, ", expected 0 or more");
  o.transformer.causal = true;
  o.transformer = o.transformer.complete();
  o.head_bias = o.head_bias && !o.tied && o.transformer.bias;
  if (o.transformer.positions != Positions::learned) o.position_offset = 0;
  return o;
}

Gpt::Gpt(const GptOptions& o)
    : options(o.complete()),
      token_(add("token", Embedding(o.vocab, o.transformer.width))),
      position_(o.transformer.positions == Positions::learned
                    ? &add("position", Embedding(o.position_offset + o.context, o.transformer.width))
                    : nullptr),
      blocks_(add("blocks", TransformerStack(options.transformer))),
      norm_(add("norm", o.transformer.connection.last(o.transformer.width, o.transformer.last_norm()))),
      head_(add("head",
                o.tied ? Linear::tied_to(token_) : Linear(o.transformer.width, o.vocab, {.bias = options.head_bias}))) {
  options.transformer.initialise(*this, o.tied);
}

Tensor Gpt::features(const Tensor& ids, DecodingCache* cache) {
  const int64_t first = cache ? cache->time() : 0;
  check(ids.rank() == 2 && ids.size(1) <= options.context - first, "gpt: ids have shape ", ids.shape(),
        ", expected [batch, at most ", options.context - first, "]");
  Residual r{token_(ids), {}};
  if (position_) r.sum = r.sum + positions_from(*position_, options.position_offset + first, ids.size(1));
  r.sum = r.sum.to(options.transformer.precision.residual_dtype(r.sum.dtype()));
  blocks_(r, {.cache = cache});
  return norm_.rows(r);
}

WeightAndBias Gpt::head() const { return {head_.weight(), head_.bias()}; }

Tensor Gpt::logits(const Tensor& rows) const { return head_(rows).to(head_.weight.dtype()); }

Tensor Gpt::forward(const Tensor& ids) { return logits(features(ids)); }

GptOptions gpt_preset(std::string_view name) {
  struct Size {
    std::string_view name;
    int64_t depth, width, heads, head_width;
  };
  constexpr Size sizes[] = {{"small", 12, 768, 12, 64}, {"medium", 24, 1024, 16, 64}, {"large", 24, 1536, 16, 96},
                            {"xl", 24, 2048, 24, 128},  {"2.7b", 32, 2560, 32, 80},   {"6.7b", 32, 4096, 32, 128},
                            {"13b", 40, 5140, 40, 128}, {"175b", 96, 12288, 96, 128}};
  for (const Size& s : sizes)
    if (s.name == name)
      return {.vocab = 50257,
              .context = 2048,
              .transformer = {.width = s.width, .depth = s.depth, .heads = s.heads, .head_width = s.head_width}};
  check(false, "gpt_preset: no size is called '", name, "'; there are small, medium, large, xl, 2.7b, 6.7b, 13b, 175b");
  return {};
}

GptOptions llama_preset(std::string_view name) {
  struct Size {
    std::string_view name;
    int64_t width, mlp, depth, heads;
  };
  constexpr Size sizes[] = {{"9m", 128, 352, 4, 4},       {"20m", 256, 688, 4, 4},     {"35m", 384, 1024, 6, 8},
                            {"40m", 416, 1024, 8, 8},     {"60m", 512, 1376, 8, 8},    {"71m", 512, 1368, 12, 8},
                            {"100m", 640, 1708, 12, 10},  {"130m", 768, 2048, 12, 12}, {"250m", 768, 2560, 24, 16},
                            {"350m", 1024, 2736, 24, 16}, {"1b", 2048, 5461, 24, 32},  {"3b", 2560, 6848, 32, 32},
                            {"7b", 4096, 11008, 32, 32}};
  std::string names;
  for (const Size& s : sizes) {
    if (s.name == name)
      return {.vocab = name == "100m" ? 32100 : 32000,
              .context = name == "7b" ? 2048 : 256,
              .head_bias = false,
              .transformer = {.width = s.width,
                              .depth = s.depth,
                              .heads = s.heads,
                              .mlp_width = s.mlp,
                              .activation = Activation::swiglu,
                              .positions = Positions::rotary_halves,
                              .affine = true,
                              .norm_bias = false,
                              .bias = false,
                              .norm = NormKind::rms,
                              .eps = 1e-6,
                              .initialisation = Initialisation::normal}};
    names += text(names.empty() ? "" : ", ", s.name);
  }
  check(false, "llama_preset: no size is called '", name, "'; there are ", names);
  return {};
}

}  // namespace isonorm::nn
