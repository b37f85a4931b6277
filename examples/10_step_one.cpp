// Compressed weights, trained directly, leave the path of Pre-LN at the first step: gradient descent depends on the
// coordinates, and these are not orthonormal. D = [I; -1^T] stretches the direction 1 by sqrt(d).
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

constexpr int64_t d = 8;
constexpr streams::Form kForm = streams::Form::crms_norm;

nn::Gpt build(streams::Form form, streams::Stored storage) {
  nn::Gpt model =
      streams::make<nn::Gpt>({.vocab = 13, .context = 6, .transformer = {.width = d, .depth = 2, .heads = 2}},
                             {.form = form, .storage = storage});
  model.to(DType::f64);
  return model;
}

// One step of gradient descent. corrected: with the two factors that turn it into Pre-LN's step in these coordinates,
//   writers  -lr (D^T D)^-1 dB = -lr (dB - 1 1^T dB / d)        readers  -lr dB D^T D = -lr (dB + dB 1 1^T)
double step(nn::Gpt& model, const Tensor& ids, const Tensor& next, bool corrected) {
  optim::Sgd sgd(model.parameters(), {.lr = 0.1});
  const Tensor loss = cross_entropy(model(ids), next);
  sgd.zero_grad();
  backward(loss);
  for (const streams::NamedParameter& p : streams::named_parameters(model)) {
    if (!corrected || p.role == streams::Role::neutral) continue;
    const Tensor g = p.tensor.grad(), total = sum(g, {p.stream_dim}, true);
    set_grad(p.tensor, p.role == streams::Role::writer ? g - total / double(d) : g + total);
  }
  sgd.step();
  return loss.item();
}

}  // namespace

int main() {
  // The metric of the stored coordinates, D^T D = I + 11^T, on 1 and on a direction orthogonal to it.
  const Tensor metric = eye(d - 1, -1, {DType::f64}) + 1.0;
  const Tensor one = ones({d - 1, 1}, {DType::f64});
  Tensor other = zeros_like(one);
  other.mutable_data<double>()[0] = 1, other.mutable_data<double>()[1] = -1;
  std::printf("d = %lld. D^T D stretches 1 by %g, and (1, -1, 0, ...) by %g.\n", static_cast<long long>(d),
              norm(matmul(metric, one)).item() / norm(one).item(),
              norm(matmul(metric, other)).item() / norm(other).item());
  std::printf(
      "Along 1, plain descent therefore moves writers %lld times too far, and readers %lld times too little.\n\n",
      static_cast<long long>(d), static_cast<long long>(d));

  manual_seed(10);
  nn::Gpt reference = build(streams::Form::layer_norm, streams::Stored::raw);
  nn::Gpt plain = build(kForm, streams::Stored::mapped), right = build(kForm, streams::Stored::mapped);
  const streams::Stream stored(kForm, d, streams::Stored::mapped);
  plain.load_state_dict(equivalence::mapped_state(reference, stored));
  right.load_state_dict(equivalence::mapped_state(reference, stored));

  Generator data{10, 0};
  std::printf("%4s  %12s  %12s  %12s\n", "step", "layer_norm", "plain", "corrected");
  for (int t = 0; t <= 10; ++t) {
    const Tensor ids = randint(0, 13, {8, 6}, kCpu, data);  // inputs are the targets, too: the model learns to copy
    const double a = step(reference, ids, ids, false), b = step(plain, ids, ids, false),
                 c = step(right, ids, ids, true);
    std::printf("%4d  %12.6f  %+12.1e  %+12.1e\n", t, a, b - a, c - a);
  }
  std::printf("\nAt step 0 all three are one function. Then plain training is another training, not a worse one.\n");
}
