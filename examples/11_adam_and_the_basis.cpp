// Weights stored in an orthonormal basis of the zero-mean rows ("baked": B = Q^T W, A Q). Gradient descent does not
// depend on the basis. Adam does: it divides each entry by its size, and the entries depend on the basis.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

namespace {

constexpr int64_t d = 8;

nn::Gpt build(streams::Form form, streams::Stored storage) {
  nn::Gpt model =
      streams::make<nn::Gpt>({.vocab = 13, .context = 6, .transformer = {.width = d, .depth = 2, .heads = 2}},
                             {.form = form, .storage = storage});
  model.to(DType::f64);
  return model;
}

// Trains Pre-LN, the baked form, and raw weights that the forward maps. Prints the loss deviations of the last two.
template <class Make> void compare(const char* name, Make optimizer, int steps) {
  constexpr streams::Form form = streams::Form::crms_isometric;
  manual_seed(11);
  nn::Gpt reference = build(streams::Form::layer_norm, streams::Stored::raw);
  nn::Gpt baked = build(form, streams::Stored::mapped), raw = build(form, streams::Stored::raw);
  baked.load_state_dict(equivalence::mapped_state(reference, streams::Stream(form, d, streams::Stored::mapped)));
  raw.load_state_dict(reference.state_dict());
  auto opt_reference = optimizer(reference), opt_baked = optimizer(baked), opt_raw = optimizer(raw);

  Generator data{11, 0};
  double off_baked = 0, off_raw = 0, norms = 0;
  for (int t = 0; t < steps; ++t) {
    const Tensor ids = randint(0, 13, {8, 6}, kCpu, data);
    const auto step = [&](nn::Gpt& model, auto& opt) {
      const Tensor loss = cross_entropy(model(ids), ids);
      opt.zero_grad();
      backward(loss);
      opt.step();
      return loss.item();
    };
    const double loss = step(reference, opt_reference);
    off_baked = std::max(off_baked, std::abs(step(baked, opt_baked) - loss));
    off_raw = std::max(off_raw, std::abs(step(raw, opt_raw) - loss));
    if (t == 0) norms = optim::grad_norm(baked.parameters()) / optim::grad_norm(reference.parameters()) - 1;
  }
  std::printf("%-22s  %14.1e  %14.1e  %20.1e\n", name, off_baked, off_raw, norms);
}

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 20;
  // A small example: a gradient, Adam's first step (the sign of every entry), and the same step in stored coordinates.
  const Tensor g = streams::recentre(tensor({3.0, 0.1, -0.4, -2.0}), -1), q = streams::helmert(4);
  const Tensor stored = matmul(g, q);                                                // Q^T g
  const auto back = [&](const Tensor& u) { return matmul(u, transpose(q, 0, 1)); };  // Q u
  std::printf("gradient                    %s\n", to_string(g).c_str());
  std::printf("SGD through the basis       %s\n", to_string(back(stored)).c_str());
  std::printf("Adam's step, without mean   %s\n", to_string(streams::recentre(sign(g), -1)).c_str());
  std::printf("Adam's through the basis    %s\n\n", to_string(back(sign(stored))).c_str());

  std::printf("largest |loss - loss of layer_norm| over %d steps\n", steps);
  std::printf("%-22s  %14s  %14s  %20s\n", "", "baked", "raw, mapped", "gradient norm, baked");
  compare(
      "SGD", [](nn::Gpt& m) { return optim::Sgd(m.parameters(), {.lr = 0.1}); }, steps);
  compare(
      "Nesterov + L2",
      [](nn::Gpt& m) {
        return optim::Sgd(m.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
      },
      steps);
  compare(
      "Adam", [](nn::Gpt& m) { return optim::Adam(m.parameters(), {.lr = 1e-2}); }, steps);
  compare(
      "AdamW", [](nn::Gpt& m) { return optim::AdamW(m.parameters(), {.lr = 1e-2}); }, steps);
} catch (const Error& e) {
  return std::fprintf(stderr, "11_adam_and_the_basis: %s\n", e.what()), 1;
}
