// Convolution: a small network with batch norm on Fashion-MNIST; images have their channels last.
// usage: 18_convolution [data folder] [steps] [--device cuda]
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

namespace {

// A convolution without bias, because the norm after it would remove a bias.
nn::Sequential layer(int64_t in, int64_t out) {
  return nn::Sequential(nn::Conv2d(in, out, 3, {.padding = 1, .bias = false}), nn::BatchNorm(out), nn::Relu(),
                        nn::MaxPool2d(2));
}

struct Net : nn::Module {
  nn::Sequential& layers = add("layers", nn::Sequential(layer(1, 16), layer(16, 32), layer(32, 64)));
  nn::Linear& head = add("head", nn::Linear(64, 10));
  Tensor forward(const Tensor& images) override { return head(mean(layers(images), {1, 2})); }  // 28 -> 14 -> 7 -> 3
};

}  // namespace

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const data::FashionMnist set = data::FashionMnist::load(argc > 1 ? argv[1] : "");
  const int steps = argc > 2 ? whole_number(argv[2]) : 600;
  manual_seed(1);
  Net net;
  net.to(device);
  optim::AdamW opt(net.parameters(), {.lr = 3e-3, .weight_decay = 0.01});
  data::Loader loader(set.train, {.rows = 64, .seed = 1, .device = device});

  for (int step = 0; step < steps; ++step) {
    const auto [images, labels] = loader.next();
    const Tensor loss = cross_entropy(net(images), labels);
    opt.zero_grad();
    backward(loss);
    opt.step();
    if (step % 100 == 0) std::printf("%5d  loss %.4f\n", step, loss.item());
  }

  net.eval();  // batch norm uses its running statistics
  NoGrad guard;
  double right = 0;
  data::Loader test(set.test, {.rows = 500, .shuffle = false, .device = device});
  for (const auto& [images, labels] : test) right += (net(images).argmax(1) == labels).sum().item();
  std::printf("test accuracy %.2f %%\n", 100 * right / static_cast<double>(set.test.labels.numel()));
} catch (const Error& e) {
  return std::fprintf(stderr, "18_convolution: %s\n", e.what()), 1;
}
