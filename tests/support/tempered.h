// A model that is not in the library: a GPT without positions whose logits are divided by a temperature. Training,
// files and proofs see only its row.
#pragma once

#include "autograd/ops/pointwise.h"
#include "streams/transformer.h"
#include "training/model_options.h"

namespace isonorm::test {

struct TemperedOptions {
  int64_t vocab = 7, context = 5;
  double temperature = 4;  // an option of this model, not of a training
  nn::TransformerOptions transformer;
};

class Tempered : public nn::Module {
 public:
  explicit Tempered(const TemperedOptions& o) : options(complete(o)), gpt_(add("gpt", nn::Gpt(inside(options)))) {}
  Tensor forward(const Tensor& ids) override { return gpt_(ids) * (1 / options.temperature); }

  const TemperedOptions options;

  friend streams::Layout layout_of(const Tempered& model) {
    return streams::Layout().with("gpt", streams::layout_of(model.gpt_));
  }

 private:
  static TemperedOptions complete(TemperedOptions o) {
    o.transformer = o.transformer.complete();
    o.transformer.positions = nn::Positions::none, o.transformer.causal = true;
    return o;
  }
  static nn::GptOptions inside(const TemperedOptions& o) {
    return {.vocab = o.vocab, .context = o.context, .transformer = o.transformer};
  }
  nn::Gpt& gpt_;
};

struct TemperedConfig final : training::ConfigOf<TemperedConfig, Tempered> {
  void fields(training::Fields& f) override {
    auto& [vocab, context, temperature, transformer] = options;
    f("vocab", vocab), f("context", context, "ids in an example"),
        f("temperature", temperature, "that logits are divided by");
  }
  int64_t stream_rows() const override { return 2 * options.vocab; }
  bool enters(std::string_view name) const override { return name == "gpt.token.weight"; }
};

inline constexpr training::ModelRow kTempered =
    training::row_of<TemperedConfig>({.name = "tempered",
                                      .title = "Tempered",
                                      .noun = "language model with a temperature",
                                      .input = training::Input::text,
                                      .causal = true});
inline constexpr const training::ModelRow* kWithTempered[] = {&training::kVit, &training::kGpt, &kTempered};

}  // namespace isonorm::test
