// LayerNorm's backward ends with a projection, which removes the mean from every gradient that passes. RMSNorm's does
// not. If the rows have mean zero, this is the only difference between the two.
#include <cstdio>

#include <isonorm/isonorm.h>

using namespace isonorm;

namespace {

double largest(const Tensor& x) { return amax(abs(x)).item(); }

// One norm between a row and a reader: which gradient does the row get?
void one_norm() {
  manual_seed(9);
  const Tensor x =
      require_grad(streams::recentre(randn({4, 8}, {DType::f64}), -1));  // rows of mean zero: the norms agree
  const Tensor reader = randn({5, 8}, {DType::f64}), target = randint(0, 5, {4});
  const auto back = [&](const Tensor& rows) { return grad(cross_entropy(linear(rows, reader), target), {x})[0]; };
  const Tensor by_layer = back(layer_norm(x)), by_rms = back(rms_norm(x));
  std::printf("outputs differ by %.1e\n\n", largest(layer_norm(x) - rms_norm(x)));
  std::printf("gradient of a row             largest entry   largest |sum of a row|\n");
  std::printf("  through layer_norm             %10.2e        %10.2e\n", largest(by_layer),
              largest(sum(by_layer, {-1})));
  std::printf("  through rms_norm               %10.2e        %10.2e\n", largest(by_rms), largest(sum(by_rms, {-1})));
  std::printf("  P (through rms_norm) - through layer_norm %.2e\n\n",
              largest(streams::recentre(by_rms, -1) - by_layer));
}

// A whole model: the same function in two forms, and the gradient of each parameter.
void whole_model() {
  const nn::GptOptions o{.vocab = 13, .context = 6, .transformer = {.width = 8, .depth = 1, .heads = 2}};
  nn::Gpt a = streams::make<nn::Gpt>(o);
  // stores P W and trains it directly
  nn::Gpt b = streams::make<nn::Gpt>(o, {.form = streams::Form::rms_norm, .storage = streams::Stored::mapped});
  a.to(DType::f64), b.to(DType::f64);
  b.load_state_dict(equivalence::mapped_state(a, streams::Stream(streams::Form::rms_norm, 8, streams::Stored::mapped)));

  const Tensor ids = randint(0, 13, {4, 6}), next = randint(0, 13, {4, 6});
  const Tensor loss_a = cross_entropy(a(ids), next), loss_b = cross_entropy(b(ids), next);
  backward(loss_a), backward(loss_b);
  std::printf("losses differ by %.1e\n\n", loss_a.item() - loss_b.item());
  std::printf("largest |mean along the stream's axis|, of the largest entry\n");
  std::printf("%-26s %-8s %10s %10s   %s\n", "gradient of", "", "layer_norm", "rms_norm", "P G_rms - G_layer");
  const auto pa = streams::named_parameters(a), pb = streams::named_parameters(b);
  for (size_t i = 0; i < pa.size(); ++i) {
    if (pa[i].role == streams::Role::neutral) continue;
    const bool writer = pa[i].role == streams::Role::writer;
    const int axis = pa[i].stream_dim;
    const Tensor ga = pa[i].tensor.grad(), gb = pb[i].tensor.grad();
    std::printf("%-26s %-8s %10.1e %10.1e   %.1e\n", pa[i].name.c_str(), writer ? "writer" : "reader",
                largest(mean(ga, {axis})) / largest(ga), largest(mean(gb, {axis})) / largest(gb),
                largest((writer ? streams::recentre(gb, axis) : gb) - ga) / largest(ga));
  }
}

}  // namespace

int main() {
  one_norm();
  whole_model();
  std::printf(
      "\nWriters: Pre-LN never learns a mean, plain RMSNorm does, and nothing but that mean tells them apart. The "
      "first\n"
      "step of an optimizer takes P W out of the weights of mean zero, and from then on rms_norm is not layer_norm.\n");
}
