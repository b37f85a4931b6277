// A small Transformer learns to continue text.   usage: 07_gpt corpus.txt [steps] [--device cuda]
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

int main(int argc, char** argv) try {
  const Device device = take_device(argc, argv);
  if (argc < 2) return std::fprintf(stderr, "usage: 07_gpt corpus.txt [steps] [--device cuda]\n"), 2;
  const int steps = argc > 2 ? whole_number(argv[2]) : 1000;
  manual_seed(1);
  const data::Text text(argv[1]);
  nn::Gpt model({.vocab = text.vocab(), .context = 64, .transformer = {.width = 128, .depth = 4, .heads = 4}});
  model.to(device);
  data::TextLoader loader(text, {.rows = 16, .length = 64, .device = device});
  optim::AdamW opt(model.parameters(), {.lr = 1e-3, .weight_decay = 0.1});

  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = loader.next();
    const Tensor loss = cross_entropy(model(x), y);
    opt.zero_grad();
    loss.backward();
    optim::clip_grad_norm(model.parameters(), 1.0);
    opt.step();
    if (step % 50 == 0) std::printf("%5d  loss %.4f\n", step, loss.item());
  }
  training::save_model("gpt.safetensors", model);

  model.eval();
  const Tensor prompt = text.batch(1, 16, 0).x[0];
  const Tensor ids = nn::generate(model, prompt, {.length = 200, .temperature = 0.8, .top_k = 20});
  std::printf("\n%s\n", text.decode(ids).c_str());
} catch (const Error& e) {
  return std::fprintf(stderr, "07_gpt: %s\n", e.what()), 1;
}
