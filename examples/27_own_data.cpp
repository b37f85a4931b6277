// A data set of your own: pictures are drawn on demand. A small convolutional network learns to classify bars.
#include <iostream>

#include "argument.h"

using namespace isonorm;

// A bar somewhere on 8 x 8 pixels, with noise. It is horizontal if i is even, and vertical if i is odd.
struct Bars {
  int64_t size() const { return 2000; }
  std::pair<Tensor, Tensor> operator[](int64_t i) const {
    Tensor picture = randn({8, 8, 1}) * 0.5;
    const Index all = Slice(), place = static_cast<int>(randint(0, 8, {1}).item());
    picture(i % 2 ? all : place, i % 2 ? place : all) = 1;
    return {picture, tensor(i % 2)};
  }
};

struct Net : nn::Module {
  nn::Conv2d& conv = add("conv", nn::Conv2d(1, 8, 3, {.padding = 1}));
  nn::Linear& head = add("head", nn::Linear(128, 2));
  Tensor forward(const Tensor& x) override { return head(max_pool2d(relu(conv(x)), 2).reshape({x.size(0), 128})); }
};

int main(int argc, char** argv) try {
  const int epochs = argc > 1 ? whole_number(argv[1]) : 4;
  manual_seed(1);
  const auto [train, test] = data::random_split(Bars(), {0.9, 0.1}, 1);
  Net net;
  optim::AdamW opt(net.parameters(), {.lr = 1e-2});
  training::Step step(net, opt);
  data::Loader batches(train, {.rows = 50, .seed = 1}), all(test, {.rows = test.size()});
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const auto& batch : batches) step(training::examples_of(batch));
  const training::Evaluation e = training::evaluate(net, training::examples_of(all.next()), epochs);
  std::cout << e.right << " of " << e.predictions << " bars right\n";
} catch (const Error& e) {
  return std::cerr << "27_own_data: " << e.what() << '\n', 1;
}
