// The row of nn::Gpt.
#include "nn/gpt.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Gpt {
  using Module = nn::Gpt;

  static void visit(nn::GptOptions& m, TrainingOptions& o, ModelShape& s, OptionVisitor& f) {
    auto& [vocab, context, tied, transformer] = m;
    f("vocab", vocab, s.vocab), f("context", context, o.context), f("tied", tied, o.tied);
  }
  static nn::GptOptions preset(std::string_view name) { return nn::llama_preset(name); }
  static int64_t stream_rows(const nn::GptOptions& m) {
    const int64_t positions = m.transformer.positions == nn::Positions::learned ? m.context : 0;
    return checked_add(m.vocab, positions, "model file: size");
  }
  // A tied table is what the head reads, too.
  static bool enters(std::string_view name, const TrainingOptions& o) {
    return name == (o.tied && o.positions == nn::Positions::learned ? "position.weight" : "token.weight");
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
