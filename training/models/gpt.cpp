// The row of nn::Gpt.
#include "nn/gpt.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Gpt {
  using Module = nn::Gpt;

  static void fields(nn::GptOptions& m, Fields& f) {
    auto& [vocab, context, tied, transformer] = m;
    f("vocab", vocab, "", from(1));
    f("context", context, "characters in a row", from(1));
    f("tied", tied, "the head reads with the token table");
  }
  static nn::GptOptions preset(std::string_view name) { return nn::llama_preset(name); }
  static int64_t stream_rows(const nn::GptOptions& m) {
    const int64_t positions = m.transformer.positions == nn::Positions::learned ? m.context : 0;
    return checked_add(m.vocab, positions, "model file: size");
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
                                             .input = Input::characters,
                                             .causal = true,
                                             .tied_table = "token.weight"});

}  // namespace isonorm::training
