#include "streams/transformer.h"

namespace isonorm::streams {

Layout layout_of(const nn::TransformerOptions& o, const TransformerParts& parts) {
  Layout layout;
  layout.width(o.width);
  if (o.connection.reads_embeddings)
    layout.reads_embeddings();
  else
    for (const std::string& table : parts.tables) layout.writes(table);
  for (const TransformerParts::Stack& stack : parts.stacks) {
    if (stack.depth == 0) continue;
    const auto in = [&](const char* part) { return text(stack.blocks, stack.blocks.empty() ? "*." : ".*.", part); };
    layout.writes(in("attn.proj")).writes(in("mlp.fc2"));
    const std::string before_mlp = in(o.shared_norm ? "norm1" : "norm2");
    layout.reads(in("attn.qkv"), in("norm1")).reads(in("mlp.fc1"), before_mlp);
    if (o.activation == nn::Activation::swiglu) layout.reads(in("mlp.gate"), before_mlp);
    if (stack.encoder_norm.empty()) continue;
    layout.writes(in("cross.proj"));
    layout.reads(in("cross.q"), in("cross_norm")).reads(in("cross.kv"), stack.encoder_norm);
  }
  for (const auto& [head, norm] : parts.heads) layout.reads(head, norm);
  return layout;
}

Layout layout_of(const nn::Gpt& model) {
  const nn::TransformerOptions& t = model.options.transformer;
  std::vector<std::string> tables = {"token"};
  if (t.positions == nn::Positions::learned) tables.push_back("position");
  return layout_of(t,
                   {.tables = tables, .stacks = {{.blocks = "blocks", .depth = t.depth}}, .heads = {{"head", "norm"}}});
}

Layout layout_of(const nn::Vit& model) {
  const nn::TransformerOptions& t = model.options.transformer;
  std::vector<std::string> tables = {"patch"};
  if (!model.options.mean_pool) tables.push_back("cls");
  Layout layout =
      layout_of(t, {.tables = tables, .stacks = {{.blocks = "blocks", .depth = t.depth}}, .heads = {{"head", "norm"}}});
  if (t.positions == nn::Positions::learned && !t.connection.reads_embeddings) layout.writes("position", 1);
  return layout;
}

Layout layout_of(const nn::EncoderDecoder& model) {
  const nn::EncoderDecoderOptions& o = model.options;
  std::vector<std::string> tables = {"target"};
  if (!o.shared) tables.push_back("source");
  if (o.transformer.positions == nn::Positions::learned)
    for (const char* table : {"source_position", "target_position"}) tables.emplace_back(table);
  Layout layout = layout_of(
      o.transformer, {.tables = tables,
                      .stacks = {{.blocks = "encoder", .depth = o.transformer.depth},
                                 {.blocks = "decoder", .depth = o.decoder_depth, .encoder_norm = "encoder_norm"}},
                      .heads = {{"head", "norm"}}});
  if (o.decoder_depth == 0) layout.norm("encoder_norm", o.transformer.eps);
  return layout;
}

}  // namespace isonorm::streams
