// The row of nn::Gpt.
#include "nn/gpt.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Gpt {
  using Module = nn::Gpt;

  static void fields(nn::GptOptions& m, Fields& f) {
    f.group = "Model";
    auto& [vocab, context, position_offset, tied, head_bias, transformer] = m;
    f("vocab", vocab, "", from(1));
    f("context", context, "context length in tokens", from(1));
    f("position_offset", position_offset, "rows of the position table before the row of the first token",
      {.most = 1 << 16});
    f("tied", tied, "weight tying: the head uses the embedding table");
    f("head_bias", head_bias,
      "a head that is not tied has a bias, which published families other than Phi do not have");
  }
  static nn::GptOptions defaults() {
    nn::GptOptions o;
    o.head_bias = false;  // so that the model can be exported
    return o;
  }
  static nn::GptOptions preset(std::string_view name) { return nn::llama_preset(name); }
  static int64_t stream_rows(const nn::GptOptions& m) {
    const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
    return add(m.vocab, m.transformer.positions == nn::Positions::learned ? add(m.position_offset, m.context) : 0);
  }
  // A tied table is what the head reads, too.
  static bool enters(std::string_view name, const nn::GptOptions& m) {
    return name == (m.tied && m.transformer.positions == nn::Positions::learned ? "position.weight" : "token.weight");
  }
};

}  // namespace

constinit const ModelRow kGpt = row_of<Gpt>({.name = "gpt",
                                             .title = "GPT",
                                             .noun = "language model",
                                             .input = Input::text,
                                             .causal = true,
                                             .tied_table = "token.weight"});

}  // namespace isonorm::training
