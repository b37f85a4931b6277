// One training by several processes: `mpirun -np 4 22_ranks`, or `22_ranks` alone. The losses agree up to rounding.
// usage: 22_ranks [steps]
#include <cstdio>

#include <isonorm/isonorm.h>

#include "argument.h"

using namespace isonorm;

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? whole_number(argv[1]) : 100;
  distributed::Group& ranks = distributed::world();
  const std::string sentences = data::made_text(1, 1 << 15);
  const data::Text text(memory_bytes(sentences, "sentences"));
  manual_seed(1);
  nn::Gpt model({.vocab = text.vocab(), .context = 32, .transformer = {.width = 32, .depth = 2, .heads = 2}});
  data::TextLoader loader(text, {.rows = 16, .length = 32});
  optim::AdamW opt(model.parameters(), {.lr = 3e-3});

  // Every rank has the same model, gets the same batches and differentiates its rows; gradients are summed over ranks.
  training::Step step(model, opt, training::cross_entropy_of, {.limits = {.norm = 1}, .group = &ranks});
  for (int t = 0; t < steps; ++t) {
    const auto [x, y] = loader.next();
    const double loss = step({x, y}).loss;
    if (ranks.rank() == 0 && t % 20 == 0) std::printf("%5d  loss %.6f\n", t, loss);
  }
  if (ranks.rank() == 0)
    std::printf("%d ranks, %.1f MB sent by the first\n", ranks.size(), static_cast<double>(ranks.bytes_sent()) / 1e6);
} catch (const std::exception& e) {
  return distributed::ended_by(e, "22_ranks");
}
