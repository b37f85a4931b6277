// A model of your own, which knows nothing of forms. A layout says which of its layers write to the residual stream and
// which read from it. Then every form of the stream trains alike: 20 steps, compared with Pre-LN changed by one ulp.
// The last layout forgets a writer, and the comparison detects it.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

// A residual network without attention: x <- x + down(relu(up(norm(x)))), twice, then a norm and a head.
struct ResidualNet : nn::Module {
  nn::Linear& entry = add("entry", nn::Linear(6, 12));
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(12));
  nn::Linear& up1 = add("up1", nn::Linear(12, 24));
  nn::Linear& down1 = add("down1", nn::Linear(24, 12));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(12));
  nn::Linear& up2 = add("up2", nn::Linear(12, 24));
  nn::Linear& down2 = add("down2", nn::Linear(24, 12));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(12));
  nn::Linear& head = add("head", nn::Linear(12, 3));

  ResidualNet() { to(DType::f64); }
  Tensor forward(const Tensor& in) override {
    nn::Residual x = entry(in);
    x += down1(relu(up1(norm1(x))));
    x += down2(relu(up2(norm2(x))));
    return head(norm(x));
  }
};

int main() {
  using training::Examples;
  const auto model = [](streams::Form form, const char* writers) {
    return [=]() -> std::unique_ptr<nn::Module> {
      auto net = std::make_unique<ResidualNet>();
      streams::Layout layout;
      layout.writes("entry").writes(writers);
      layout.reads("up1", "norm1").reads("up2", "norm2").reads("head", "norm");
      streams::parametrize(*net, layout, streams::Stream(form, 12));
      return net;
    };
  };
  const auto adamw = [](const std::vector<Tensor>& parameters) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-2});
  };
  const auto batch = [](int64_t step) {
    Generator data{7, static_cast<uint64_t>(step)};
    return Examples{randn({16, 6}, {DType::f64}, data), randint(0, 3, {16}, kCpu, data)};
  };
  manual_seed(3);
  const auto compare = [&](streams::Form form, const char* writers) {
    const equivalence::Comparison c = equivalence::compare_trajectories(
        model(streams::Form::layer_norm, "down*"), model(form, writers), {}, training::cross_entropy_of, adamw, batch);
    std::printf("%s, writers %s: %s\n", name_of(form), writers, c.sentence().c_str());
  };
  for (streams::Form form : {streams::Form::rms_norm, streams::Form::crms_norm, streams::Form::crms_isometric})
    compare(form, "down*");
  compare(streams::Form::rms_norm, "down2");
}
