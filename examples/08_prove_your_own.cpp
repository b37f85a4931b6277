// A model of one's own on a stream: it says which of its layers read from the residual stream and which write to it,
// and every form of the stream gives the same losses and gradients. The last run forgets to declare a writer, and is
// found out.
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

// A pre-normalised residual network without attention: x <- x + down(relu(up(norm(x)))), twice, then a norm and a head.
struct ResidualNet : nn::Module {
  nn::Stream stream;
  bool declared;
  nn::Linear& entry = add("entry", nn::Linear(6, stream.width(), {.writes = &stream}));
  nn::StreamNorm& norm1 = add("norm1", nn::StreamNorm(stream));
  nn::Linear& up1 = add("up1", nn::Linear(stream.width(), 24, {.reads = &norm1}));
  nn::Linear& down1 = add("down1", nn::Linear(24, stream.width(), {.writes = declared ? &stream : nullptr}));
  nn::StreamNorm& norm2 = add("norm2", nn::StreamNorm(stream));
  nn::Linear& up2 = add("up2", nn::Linear(stream.width(), 24, {.reads = &norm2}));
  nn::Linear& down2 = add("down2", nn::Linear(24, stream.width(), {.writes = &stream}));
  nn::StreamNorm& norm = add("norm", nn::StreamNorm(stream));
  nn::Linear& head = add("head", nn::Linear(stream.width(), 3, {.reads = &norm}));

  ResidualNet(nn::StreamForm form, bool declare) : stream(form, 12), declared(declare) { to(DType::f64); }
  Tensor forward(const Tensor& x) override {
    nn::Residual r{entry(x), {}};
    r.pending = down1(relu(up1(norm1(r))));
    r.pending = down2(relu(up2(norm2(r))));
    return head(norm(r));
  }
};

int main() {
  manual_seed(3);
  const TensorOptions f64{DType::f64};
  ResidualNet reference(nn::StreamForm::layer_norm, true);

  const auto compare = [&](nn::StreamForm form, bool declared) {
    ResidualNet other(form, declared);
    other.load_state_dict(reference.state_dict());
    ResidualNet base = nn::clone(reference, nn::StreamForm::layer_norm, true);
    optim::AdamW opt_base(base.parameters(), {.lr = 1e-2}), opt_other(other.parameters(), {.lr = 1e-2});
    Generator data{7, 0};
    double loss_gap = 0, gradient_gap = 0;
    for (int step = 0; step < 20; ++step) {
      const Tensor x = randn({16, 6}, f64, data), y = randint(0, 3, {16}, kCpu, data);
      const Tensor a = cross_entropy(base(x), y), b = cross_entropy(other(x), y);
      opt_base.zero_grad(), opt_other.zero_grad();
      backward(a), backward(b);
      loss_gap = std::max(loss_gap, std::abs(a.item() - b.item()));
      const auto pa = base.parameters(), pb = other.parameters();
      for (size_t i = 0; i < pa.size(); ++i)
        gradient_gap = std::max(gradient_gap, amax(abs(gradient(pa[i]) - gradient(pb[i]))).item());
      opt_base.step(), opt_other.step();
    }
    std::printf("%-15s %-22s largest gap over 20 steps: loss %.1e, gradient %.1e\n", nn::name_of(form),
                declared ? "" : "(a writer undeclared)", loss_gap, gradient_gap);
  };
  for (nn::StreamForm form : {nn::StreamForm::rms_norm, nn::StreamForm::crms_norm, nn::StreamForm::crms_isometric})
    compare(form, true);
  compare(nn::StreamForm::rms_norm, false);
}
