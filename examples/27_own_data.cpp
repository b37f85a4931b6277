// A data set of one's own: digits that are drawn when they are asked for. A small convolution learns to read them.
// usage: 27_own_data [epochs]
#include <cstdio>

#include "argument.h"

using namespace isonorm;

// Seven segments of a digit on 9 x 7 pixels, with noise. Example i shows the digit i % 10.
struct Digits {
  int64_t size() const { return 2000; }
  std::pair<Tensor, Tensor> operator[](int64_t i) const {
    constexpr int kSegments[] = {0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f};
    Tensor image = randn({9, 7, 1}) * 0.3;
    const int lit = kSegments[i % 10];
    for (int row = 0; row < 3; ++row)
      if (lit >> (3 * row) & 1) image(1 + 3 * row, Slice(2, 5)) = 1;  // segments 0, 3, 6 lie
    for (int half = 0; half < 2; ++half)
      for (int side = 0; side < 2; ++side)
        if (lit >> (1 + 3 * half + side) & 1) image(Slice(2 + 3 * half, 4 + 3 * half), 1 + 4 * side) = 1;
    return {image, tensor(i % 10)};
  }
};

struct Net : nn::Module {
  nn::Conv2d& conv = add("conv", nn::Conv2d(1, 8, 3, {.padding = 1}));
  nn::Linear& head = add("head", nn::Linear(96, 10));
  Tensor forward(const Tensor& x) override { return head(max_pool2d(relu(conv(x)), 2).reshape({x.size(0), 96})); }
};

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? whole_number(argv[1]) : 4;
  manual_seed(1);
  const auto [train, test] = data::random_split(Digits(), {0.9, 0.1}, 1);
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-2});
  training::Step step(net, opt);
  data::Loader loader(train, {.rows = 50, .seed = 1});
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& batch : loader) step(training::examples_of(batch));
  data::Loader all(test, {.rows = test.size(), .shuffle = false});
  const training::Evaluation e = training::evaluate(net, training::examples_of(all.next()), 0);
  std::printf("%lld of %lld digits right\n", static_cast<long long>(e.right), static_cast<long long>(e.predictions));
} catch (const Error& e) {
  return std::fprintf(stderr, "27_own_data: %s\n", e.what()), 1;
}
