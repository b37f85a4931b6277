// A language model that was written without streams in mind. It has its own options, which are not a Transformer's, a
// layout of six lines and a row.
#pragma once

#include "autograd/ops/pointwise.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "streams/transformer.h"
#include "training/model_options.h"

namespace isonorm::test {

struct PlainOptions {
  int64_t vocab = 7, width = 8, hidden = 12;
};

// Predicts the next id from the id alone: x <- x + down(gelu(up(norm1(x)))), twice.
class PlainNet : public nn::Module {
 public:
  explicit PlainNet(const PlainOptions& o) : options(o) {}
  const PlainOptions options;

  nn::Embedding& token = add("token", nn::Embedding(options.vocab, options.width));
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(options.width, {.affine = false}));
  nn::Linear& up1 = add("up1", nn::Linear(options.width, options.hidden));
  nn::Linear& down1 = add("down1", nn::Linear(options.hidden, options.width));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(options.width, {.affine = false}));
  nn::Linear& up2 = add("up2", nn::Linear(options.width, options.hidden));
  nn::Linear& down2 = add("down2", nn::Linear(options.hidden, options.width));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(options.width, {.affine = false}));
  nn::Linear& head = add("head", nn::Linear(options.width, options.vocab));

  Tensor forward(const Tensor& ids) override {
    nn::Residual x = token(ids);
    x += down1(gelu(up1(norm1(x))));
    x += down2(gelu(up2(norm2(x))));
    return head(norm(x));
  }
};

inline streams::Layout layout_of(const PlainNet& net) {
  streams::Layout layout;
  layout.width(net.options.width).writes("token").writes("down*");
  layout.reads("up1", "norm1").reads("up2", "norm2").reads("head", "norm");
  return layout;
}

struct PlainConfig final : training::ConfigOf<PlainConfig, PlainNet> {
  void fields(training::Fields& f) override {
    auto& [vocab, width, hidden] = options;
    f("vocab", vocab), f("width", width), f("hidden", hidden);
  }
  int64_t stream_rows() const override { return 2 * options.vocab + 4 * options.hidden; }
  bool enters(std::string_view name) const override { return name == "token.weight"; }
};

inline constexpr training::ModelRow kPlain = training::row_of<PlainConfig>(
    {.name = "plain", .title = "Plain", .noun = "language model", .input = training::Input::text});
inline constexpr const training::ModelRow* kWithPlain[] = {&training::kVit, &training::kGpt, &kPlain};

}  // namespace isonorm::test
