// A model that was written without a thought of forms: a plain stack of Transformer blocks with dropout and layer
// scale. Six lines describe its residual stream. Then it trains as Pre-RMSNorm and Pre-CRMSNorm just as it does as
// Pre-LN, its original form. A layout that forgets the writers of attention is detected.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

constexpr int64_t kWidth = 16, kTokens = 5, kClasses = 4;

// Rows of 6 numbers -> a class for each row.
struct Tagger : nn::Module {
  nn::Linear& embed = add("embed", nn::Linear(6, kWidth));
  nn::TransformerStack& blocks =
      add("blocks",
          nn::TransformerStack(nn::TransformerOptions{
              .width = kWidth, .depth = 2, .heads = 2, .affine = true, .branch = {.dropout = 0.1, .layer_scale = 0.5}}
                                   .complete()));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kWidth));
  nn::Linear& head = add("head", nn::Linear(kWidth, kClasses));

  Tagger() { to(DType::f64); }
  Tensor forward(const Tensor& rows) override {
    nn::Residual x = embed(rows);
    blocks(x);
    return flatten(head(norm(x)), 0, 1);
  }
};

int main() {
  const auto model = [](streams::Form form, bool forgotten) {
    return [=]() -> std::unique_ptr<nn::Module> {
      auto net = std::make_unique<Tagger>();
      streams::Layout layout;
      layout.writes("embed").writes("blocks.*.mlp.fc2");
      if (!forgotten) layout.writes("blocks.*.attn.proj");
      layout.reads("blocks.*.attn.qkv", "blocks.*.norm1");
      layout.reads("blocks.*.mlp.fc1", "blocks.*.norm2");
      layout.reads("head", "norm");
      streams::parametrize(*net, layout, streams::Stream(form, kWidth));
      return net;
    };
  };
  const auto adamw = [](const std::vector<Tensor>& parameters) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-2});
  };
  const auto batch = [](int64_t step) {
    Generator data{7, static_cast<uint64_t>(step)};
    return training::Examples{randn({8, kTokens, 6}, {DType::f64}, data),
                              randint(0, kClasses, {8 * kTokens}, kCpu, data)};
  };
  manual_seed(3);
  const auto compare = [&](streams::Form form, bool forgotten) {
    const equivalence::Comparison c = equivalence::compare_trajectories(
        model(streams::Form::layer_norm, false), model(form, forgotten), {}, training::cross_entropy_of, adamw, batch);
    std::printf("%s%s: %s\n", name_of(form), forgotten ? ", attn.proj forgotten" : "", c.sentence().c_str());
    return c.equivalent() != forgotten;
  };
  bool expected = true;
  for (streams::Form form : {streams::Form::rms_norm, streams::Form::crms_norm, streams::Form::crms_isometric})
    expected = compare(form, false) && expected;
  return compare(streams::Form::rms_norm, true) && expected ? 0 : 1;
}
