// Classification: a Transformer-free network on Fashion-MNIST.   usage: 04_digits [data folder] [steps] [--device cuda]
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  const data::FashionMnist set = data::FashionMnist::load(argc > 1 ? argv[1] : "");
  const int steps = argc > 2 ? whole_number(argv[2]) : 1000;
  manual_seed(1);
  nn::Sequential net(nn::Linear(784, 256), nn::Gelu(), nn::Linear(256, 10));
  net.to(device);
  optim::AdamW opt(net.parameters(), {.lr = 1e-3, .weight_decay = 0.01});
  const optim::Schedule schedule{.peak = 1e-3, .warmup = steps / 20, .steps = steps};
  data::Loader loader(set.train, {.rows = 128, .seed = 1});

  for (int step = 0; step < steps; ++step) {
    const data::Batch batch = loader.next();
    const Tensor loss = cross_entropy(net(flatten(to(batch.images, device), 1)), to(batch.labels, device));
    opt.zero_grad();
    backward(loss);
    opt.set_lr(schedule.lr(step));
    opt.step();
    if (step % 100 == 0) std::printf("%5d  loss %.4f\n", step, loss.item());
  }

  net.eval();
  NoGrad guard;
  int64_t right = 0;
  const int64_t n = set.test.labels.numel(), rows = 500;
  for (int64_t at = 0; at < n; at += rows) {
    const data::Batch batch = data::slice_batch(set.test, at, std::min(rows, n - at));
    const Tensor hits = eq(argmax(net(flatten(to(batch.images, device), 1))), to(batch.labels, device));
    right += static_cast<int64_t>(sum(cast(hits, DType::f32)).item());
  }
  std::printf("test accuracy %.2f %%\n", 100.0 * static_cast<double>(right) / static_cast<double>(n));
} catch (const Error& e) {
  return std::fprintf(stderr, "04_digits: %s\n", e.what()), 1;
}
