// The overhead of a group with a single rank: training steps with and without it, alternately.
//   usage: group [CASE] [--rounds N]
// Prints the medians and their ratio. Exit code 1 if the ratio is above 1.01. The overhead does not grow with the
// model, so the smallest model shows it best.
#include <algorithm>
#include <cstdio>
#include <CLI/CLI.hpp>

#include "benchmarks/measure.h"
#include "benchmarks/serve.h"
#include "benchmarks/trainer.h"
#include "core/random.h"
#include "core/system/parallel.h"
#include "distributed/group.h"

using namespace isonorm;
using namespace isonorm::bench;

int main(int argc, char** argv) {
  constexpr int kWarmup = 3;
  std::vector<std::string> names;
  for (const Case& c : kCases) names.emplace_back(c.name);
  std::string name = "gpt_smoke";
  int rounds = 5001, threads = num_threads();
  CLI::App app("Times training steps with a single-rank group and without a group, alternately.");
  app.add_option("case", name, "the model")->check(CLI::IsMember(names));
  app.add_option("--rounds", rounds, "timed steps of each")->check(CLI::PositiveNumber);
  app.add_option("--threads", threads, "threads of kernels and BLAS")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  try {
    set_num_threads(threads);
    const Case& c = *std::ranges::find(kCases, name, &Case::name);
    distributed::Group one;
    manual_seed(1);
    Trainer without(c);
    manual_seed(1);
    Trainer with(c, {.group = &one});
    std::vector<double> alone, grouped;
    for (int i = -kWarmup; i < rounds; ++i) {
      double ms[2];
      for (const int turn : {i & 1, ~i & 1}) ms[turn] = milliseconds([&] { (turn == 0 ? without : with).step(); });
      if (i >= 0) alone.push_back(ms[0]), grouped.push_back(ms[1]);
    }
    const double ratio = median(grouped) / median(alone);
    const auto facts = environment();
    std::printf(
        "%s, %d threads, BLAS core %s: %.3f ms without a group, %.3f ms with a single-rank group, ratio %.4f (%d steps "
        "each)\n",
        name.c_str(), threads, facts["core"].get<std::string>().c_str(), median(alone), median(grouped), ratio, rounds);
    return ratio > 1.01;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "group: %s\n", e.what());
    return 3;
  }
}
