// Sequences of different lengths: an LSTM with padded batches and a mask learns which value of a sequence is the last.
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

struct Reader : nn::Module {
  nn::Lstm& lstm = add("lstm", nn::Lstm({.inputs = 1, .hidden = 16}));
  nn::Linear& head = add("head", nn::Linear(16, 1));
  Tensor operator()(const Tensor& x, const Tensor& mask) { return head(lstm(x, {.mask = mask}).state[0][-1]); }
};

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 300;
  manual_seed(1);
  Reader net;
  optim::Adam opt(net.parameters(), {.lr = 1e-2});
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> sequences, targets;
    for (int64_t length : {3, 7, 5, 2}) {
      sequences.push_back(randn({length, 1}));
      targets.push_back(sequences.back()[-1]);
    }
    const Tensor x = pad_sequence(sequences, true, NAN), mask = arange(7) < tensor({3, 7, 5, 2}).unsqueeze(1);
    const Tensor loss = mse_loss(net(x, mask), stack(targets));
    opt.zero_grad(), loss.backward(), opt.step();
    if (step == 0 || step + 1 == steps) std::printf("%5d  loss %.4f\n", step, loss.item());
  }
  const NoGrad no_grad;  // Padding changes nothing, even if it is NaN: each sequence alone gives the same answer.
  const Tensor a = randn({2, 1}), b = randn({4, 1}), mask = arange(4) < tensor({2, 4}).unsqueeze(1);
  const Tensor both = net(pad_sequence({a, b}, true, NAN), mask), alone = net(a.unsqueeze(0), {});
  std::printf("padded is %s alone\n", allclose(both[0], alone[0], 0, 1e-6) ? "as" : "not as");
} catch (const Error& e) {
  return std::fprintf(stderr, "25_padded_lstm: %s\n", e.what()), 1;
}
