// A model of one's own on a stream: it says which of its layers read from the residual stream and which write to it,
// and every form of the stream trains the same: 20 steps, judged against Pre-LN moved by one unit in the last place.
// The last run forgets to declare a writer, and is found out.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

// A pre-normalised residual network without attention: x <- x + down(relu(up(norm(x)))), twice, then a norm and a head.
struct ResidualNet : nn::Module {
  nn::Stream stream;
  bool declared;
  nn::Linear& entry = add("entry", nn::written_to(stream, 6));
  nn::PreNorm& norm1 = add("norm1", nn::PreNorm(stream));
  nn::Linear& up1 = add("up1", nn::read_by(norm1, 24));
  nn::Linear& down1 = add("down1", declared ? nn::written_to(stream, 24) : nn::Linear(24, stream.width()));
  nn::PreNorm& norm2 = add("norm2", nn::PreNorm(stream));
  nn::Linear& up2 = add("up2", nn::read_by(norm2, 24));
  nn::Linear& down2 = add("down2", nn::written_to(stream, 24));
  nn::PreNorm& norm = add("norm", nn::PreNorm(stream));
  nn::Linear& head = add("head", nn::read_by(norm, 3));

  ResidualNet(nn::StreamForm form, bool declare) : stream(form, 12), declared(declare) { to(DType::f64); }
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
    return [=]() -> std::unique_ptr<nn::Module> { return std::make_unique<ResidualNet>(form, declared); };
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
