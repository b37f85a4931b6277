// The row of nn::Gpt.
#include "nn/gpt.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Gpt final : ConfigOf<Gpt, nn::Gpt> {
  Gpt() { options.head_bias = false; }  // so that the model can be exported

  void fields(Fields& f) override {
    f.group = "Model";
    auto& [vocab, context, position_offset, tied, head_bias, transformer] = options;
    f("vocab", vocab, "", from(1), kInBoth);
    f("context", context, "context length in tokens", from(1), kInBoth);
    f("position_offset", position_offset, "rows of the position table before the row of the first token",
      {.most = 1 << 16}, kInOnnx);
    f("tied", tied, "weight tying: the head uses the embedding table", {}, kInBoth);
    f("head_bias", head_bias, "a head that is not tied has a bias, which published families other than Phi do not have",
      {}, kInBoth);
  }
  static nn::GptOptions preset(std::string_view name) { return nn::llama_preset(name); }
  int64_t stream_rows() const override {
    const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
    return add(options.vocab, options.transformer.positions == nn::Positions::learned
                                  ? add(options.position_offset, options.context)
                                  : 0);
  }
  // A tied table is read by the head, too.
  bool enters(std::string_view name) const override {
    return name == (options.tied && options.transformer.positions == nn::Positions::learned ? "position.weight"
                                                                                            : "token.weight");
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
