// A model of one's own, which knows nothing of forms. A layout says which of its layers read from the residual stream and
// which write to it, and every form of the stream trains the same: 20 steps, judged against Pre-LN moved by one unit in
// the last place. The last run's layout forgets a writer, and is found out.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

// A pre-normalised residual network without attention: x <- x + down(relu(up(norm(x)))), twice, then a norm and a head.
struct ResidualNet : nn::Module {
  nn::Linear& entry = add("entry", nn::Linear(6, 12));
  nn::PreNorm& norm1 = add("norm1", nn::PreNorm(12));
  nn::Linear& up1 = add("up1", nn::Linear(12, 24));
  nn::Linear& down1 = add("down1", nn::Linear(24, 12));
  nn::PreNorm& norm2 = add("norm2", nn::PreNorm(12));
  nn::Linear& up2 = add("up2", nn::Linear(12, 24));
  nn::Linear& down2 = add("down2", nn::Linear(24, 12));
  nn::PreNorm& norm = add("norm", nn::PreNorm(12));
  nn::Linear& head = add("head", nn::Linear(12, 3));

  ResidualNet() { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    nn::Residual r{entry(x), {}};
    norm1.join(r, down1(relu(up1(norm1.read(r)))));
    norm2.join(r, down2(relu(up2(norm2.read(r)))));
    return head(norm.read(r));
  }
};

int main() {
  using training::Examples;
  const auto model = [](nn::StreamForm form, bool declared) {
    return [=]() -> std::unique_ptr<nn::Module> {
      auto net = std::make_unique<ResidualNet>();
      nn::Layout layout;
      layout.writes("entry").writes("down2").reads("up1", "norm1").reads("up2", "norm2").reads("head", "norm");
      if (declared) layout.writes("down1");
      nn::parametrize(*net, layout, nn::Stream(form, 12));
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
  const auto compare = [&](nn::StreamForm form, bool declared) {
    const equivalence::Comparison c =
        equivalence::compare_trajectories(model(nn::StreamForm::layer_norm, true), model(form, declared), {},
                                          training::cross_entropy_of, adamw, batch);
    std::printf("%s%s: %s\n", nn::name_of(form), declared ? "" : ", down1 undeclared", c.message().c_str());
  };
  for (nn::StreamForm form : {nn::StreamForm::rms_norm, nn::StreamForm::crms_norm, nn::StreamForm::crms_isometric})
    compare(form, true);
  compare(nn::StreamForm::rms_norm, false);
}
