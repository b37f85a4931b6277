// A port with a mistake, and the comparison's answers: is it in the forward, the backward or the update, at which
// place, and why? Six mistakes, one at a time.
#include <cstdio>
#include <set>

#include <isonorm/isonorm.h>

using namespace isonorm;

enum class Mistake { none, eps, tanh_gelu, own_rule, dropout, sum, decay };

// The reference: layers of the library.
struct Reference : nn::Module {
  nn::Linear& in = add("in", nn::Linear(6, 12));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(12));
  nn::Linear& up = add("up", nn::Linear(12, 24));
  nn::Linear& head = add("head", nn::Linear(24, 3));

  Reference() { to(DType::f64); }
  Tensor forward(const Tensor& x) override { return head(gelu(up(norm(in(x))))); }
};

// The port: the same parameters, and ops written by hand.
struct Port : Reference {
  Mistake mistake;
  explicit Port(Mistake m) : mistake(m) {}

  Tensor normalize(const Tensor& x) const {
    const Tensor c = x - mean(x, {-1}, true);
    return c / sqrt(mean(square(c), {-1}, true) + (mistake == Mistake::eps ? 1e-6 : 1e-5)) * norm.weight() +
           norm.bias();
  }
  // tanh with a wrong backward: 1 - y instead of 1 - y^2.
  static Tensor own_tanh(const Tensor& x) {
    const Tensor y = tanh(detach(x));
    if (auto* node = track("own_tanh", {&y}, {&x}))
      node->backward = [y](Flow& flow) { flow.give(0, flow.out() * (1 - y)); };
    return y;
  }
  Tensor activate(const Tensor& x) const {
    if (mistake == Mistake::tanh_gelu) return gelu_tanh(x);
    return x * (erf(x * std::sqrt(0.5)) + 1) * 0.5;
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = normalize(matmul(x, transpose(in.weight(), 0, 1)) + in.bias());
    if (mistake == Mistake::dropout) h = dropout(h, 0.1, training());
    if (mistake == Mistake::own_rule) h = h + (own_tanh(h) - tanh(h));  // adds zero
    return head(activate(up(h)));
  }
};

Tensor loss(nn::Module& model, const training::Examples& batch) {
  const auto* port = dynamic_cast<const Port*>(&model);
  const bool sums = port && port->mistake == Mistake::sum;
  return cross_entropy(model(batch.inputs), batch.targets, {.reduction = sums ? Reduction::sum : Reduction::mean});
}

training::Examples batch(int64_t point) {
  Generator data{7, static_cast<uint64_t>(point)};
  return {randn({16, 6}, {DType::f64}, data), randint(0, 3, {16}, kCpu, data)};
}

void gradients(const char* title, Mistake mistake) {
  manual_seed(3);
  Reference reference;
  Port port(mistake);
  std::printf("%s\n%s\n\n", title, equivalence::compare_gradients(reference, port, {}, loss, batch).sentence().c_str());
}

// The port's optimizer has no weight decay.
void training_of(const char* title) {
  std::set<const Storage*> ported;
  const auto adamw = [&](const std::vector<Tensor>& p) -> std::unique_ptr<optim::Optimizer> {
    const double decay = ported.contains(p[0].impl().storage.get()) ? 0 : 0.1;
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .weight_decay = decay});
  };
  const auto make_port = [&]() -> std::unique_ptr<nn::Module> {
    auto port = std::make_unique<Port>(Mistake::none);
    ported.insert(port->parameters()[0].impl().storage.get());
    return port;
  };
  manual_seed(3);
  std::printf("%s\n%s\n", title,
              equivalence::compare_trajectories([] { return std::make_unique<Reference>(); }, make_port, {}, loss,
                                                adamw, batch, {.steps = 5})
                  .sentence()
                  .c_str());
}

int main() {
  gradients("no mistake", Mistake::none);
  gradients("the forward, with a cause: eps is 1e-6 in the port's norm", Mistake::eps);
  gradients("the forward, without: the port has GELU's tanh form", Mistake::tanh_gelu);
  gradients("the backward: a rule of one's own is wrong", Mistake::own_rule);
  gradients("training mode: the port drops entries", Mistake::dropout);
  gradients("a factor: the port's loss is a sum", Mistake::sum);
  training_of("the update: the port's optimizer does not decay");
}
