// Classification: a network without attention on Fashion-MNIST.
//   usage: 04_digits [data folder] [epochs] [--device cuda]
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const data::FashionMnist set = data::FashionMnist::load(argc > 1 ? argv[1] : "");
  const int epochs = argc > 2 ? whole_number(argv[2]) : 2;
  manual_seed(1);
  data::Loader train(set.train, {.rows = 128, .seed = 1, .device = device});
  data::Loader test(set.test, {.rows = 500, .shuffle = false, .device = device});
  nn::Sequential net(nn::Linear(784, 256), nn::Gelu(), nn::Linear(256, 10));
  net.to(device);
  optim::AdamW opt(net.parameters(), {.lr = 1e-3});

  for (int epoch = 0; epoch < epochs; ++epoch) {
    net.train();
    for (const auto& [images, labels] : train) {
      const Tensor loss = cross_entropy(net(images.flatten(1)), labels);
      opt.zero_grad();
      loss.backward();
      opt.step();
    }
    net.eval();
    const NoGrad no_grad;
    double right = 0;
    for (const auto& [images, labels] : test) right += (net(images.flatten(1)).argmax(1) == labels).sum().item();
    std::printf("epoch %d  test accuracy %.2f %%\n", epoch, 100 * right / set.test.labels.numel());
  }
} catch (const Error& e) {
  return std::fprintf(stderr, "04_digits: %s\n", e.what()), 1;
}
