// The output of a norm with eps = 0 does not change if its rows are scaled. Multiply every writer of a Pre-LN stream by
// one number: the stream grows, and the loss stays. The gradient of all writers together is therefore orthogonal to all
// writers: sum <dL/dW, W> = 0 (Euler). For one writer alone this does not hold, because no norm reads one writer alone.
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

nn::Gpt build(double eps) {
  manual_seed(30);
  nn::Gpt model = streams::make<nn::Gpt>(
      {.vocab = 13, .context = 6, .transformer = {.width = 8, .depth = 2, .heads = 2, .eps = eps}});
  model.to(DType::f64);
  return model;
}

double product(const Tensor& weight) { return sum(weight.grad() * weight).item(); }

}  // namespace

int main() {
  Generator data{30, 0};
  const Tensor ids = randint(0, 13, {4, 6}, kCpu, data), next = randint(0, 13, {4, 6}, kCpu, data);
  std::printf("%-28s %14s %14s\n", "<dL/dW, W> of the writer", "eps = 1e-14", "eps = 1e-5");
  nn::Gpt exact = build(1e-14), usual = build(1e-5);
  backward(cross_entropy(exact(ids), next)), backward(cross_entropy(usual(ids), next));
  const auto a = streams::named_parameters(exact), b = streams::named_parameters(usual);
  double all_a = 0, all_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].role != streams::Role::writer) continue;
    std::printf("%-28s %+14.6f %+14.6f\n", a[i].name.c_str(), product(a[i].tensor), product(b[i].tensor));
    all_a += product(a[i].tensor), all_b += product(b[i].tensor);
  }
  std::printf("%-28s %+14.1e %+14.1e\n\n", "all writers", all_a, all_b);

  // Steps of plain gradient descent are orthogonal to the writers, so together they can only get longer.
  std::printf("%6s %24s\n", "steps", "|all writers|, SGD");
  optim::Sgd sgd(exact.parameters(), {.lr = 0.1});
  for (int step = 0; step <= 200; ++step) {
    double square = 0;
    for (const streams::NamedParameter& p : streams::named_parameters(exact))
      if (p.role == streams::Role::writer) square += sum(p.tensor * p.tensor).item();
    if (step % 50 == 0) std::printf("%6d %24.6f\n", step, std::sqrt(square));
    sgd.zero_grad();
    backward(cross_entropy(exact(ids), next));
    sgd.step();
  }
}
