#include "streams/transformer.h"

namespace isonorm::streams {

Layout layout_of(const nn::TransformerOptions& o, const TransformerParts& parts) {
  Layout layout;
  if (o.connection.bare_entry)
    layout.bare_entry();
  else
    for (const std::string& table : parts.tables) layout.writes(table);
  for (const TransformerParts::Stack& stack : parts.stacks) {
    if (stack.depth == 0) continue;
    const std::string block = stack.blocks.empty() ? "*." : stack.blocks + ".*.";
    layout.writes(block + "attn.proj").writes(block + "mlp.fc2");
    layout.reads(block + "attn.qkv", block + "norm1").reads(block + "mlp.fc1", block + "norm2");
    if (o.activation == nn::Activation::swiglu) layout.reads(block + "mlp.gate", block + "norm2");
    if (stack.encoder_norm.empty()) continue;
    layout.writes(block + "cross.proj");
    layout.reads(block + "cross.q", block + "cross_norm").reads(block + "cross.kv", stack.encoder_norm);
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
  if (t.positions == nn::Positions::learned) tables.push_back("position");
  if (!model.options.mean_pool) tables.push_back("cls");
  return layout_of(t,
                   {.tables = tables, .stacks = {{.blocks = "blocks", .depth = t.depth}}, .heads = {{"head", "norm"}}});
}

Layout layout_of(const nn::EncoderDecoder& model) {
  const nn::EncoderDecoderOptions& o = model.options;
  std::vector<std::string> tables = {"target"};
  if (!o.shared) tables.push_back("source");
  if (o.transformer.positions == nn::Positions::learned)
    tables.insert(tables.end(), {"source_position", "target_position"});
  return layout_of(o.transformer,
                   {.tables = tables,
                    .stacks = {{.blocks = "encoder", .depth = o.transformer.depth},
                               {.blocks = "decoder", .depth = o.decoder_depth, .encoder_norm = "encoder_norm"}},
                    .heads = {{"head", "norm"}}});
}

}  // namespace isonorm::streams
