// Trains a recurrent model in four versions: without a norm and with LayerNorm, RMSNorm and pRMSNorm. The versions take
// steps alternately, so that other load on the machine affects all alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include <isonorm/isonorm.h>

#include "argument.h"

struct ByNorm {
  const char* name;
  isonorm::NormKind norm;
  double p;
};
// The authors of RMSNorm used 6.25 % (1910.07467).
inline constexpr ByNorm kByNorm[] = {{"none", isonorm::NormKind::none, 1},
                                     {"layer", isonorm::NormKind::layer, 1},
                                     {"rms", isonorm::NormKind::rms, 1},
                                     {"prms", isonorm::NormKind::rms, 0.0625}};

// The norms with these names; without names, all norms. Throws on an unknown name.
inline std::vector<ByNorm> norms_of(int count, char** words) {
  if (count <= 0) return {std::begin(kByNorm), std::end(kByNorm)};
  std::vector<ByNorm> chosen;
  for (int i = 0; i < count; ++i) {
    const auto* at = std::find_if(std::begin(kByNorm), std::end(kByNorm),
                                  [&](const ByNorm& n) { return n.name == std::string_view(words[i]); });
    isonorm::check(at != std::end(kByNorm), "\"", words[i], "\" is not none, layer, rms or prms");
    chosen.push_back(*at);
  }
  return chosen;
}

// A Model is constructed from a ByNorm and has loss(batch) and accuracy(batch); draw(seed) makes a batch. Each norm is
// trained from three seeds with Adam at rate `lr` and gradients clipped at 1. Prints losses while it trains, then a
// line for each norm: its loss over the last 20 steps; the mean, least and largest accuracy on 20 held-out batches; the
// median time of a step, and this time divided by the first norm's.
template <class Model, class Draw>
void train_by_norm(const std::vector<ByNorm>& norms, int steps, double lr, Draw draw) {
  using namespace isonorm;
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kSeeds = 3;
  constexpr int kLast = 20, kTests = 20;
  struct Entrant {
    std::unique_ptr<Model> model;
    std::unique_ptr<optim::Adam> adam;
    std::vector<double> losses = {};
  };
  check(steps > 0, "0 steps leave nothing to show");
  std::vector<std::vector<Entrant>> all;  // by norm, then by seed
  std::printf(" step");
  for (const ByNorm& n : norms) {
    all.emplace_back();
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      manual_seed(seed);
      auto model = std::make_unique<Model>(n);
      auto adam = std::make_unique<optim::Adam>(model->parameters(), optim::AdamOptions{.lr = lr});
      all.back().push_back({std::move(model), std::move(adam)});
    }
    std::printf("  %7s", n.name);
  }
  const auto batch_of = [&](uint64_t seed, int step) {
    return draw((seed + 1) * 1'000'000 + static_cast<uint64_t>(step));
  };
  // The mean loss over the seeds and over the last `count` steps before `step`.
  const auto mean_loss = [&](const std::vector<Entrant>& seeds, int step, int count) {
    double sum = 0;
    for (const Entrant& e : seeds)
      for (int t = step - count; t < step; ++t) sum += e.losses[static_cast<size_t>(t)];
    return sum / (static_cast<double>(kSeeds) * count);
  };
  std::vector<std::vector<double>> ms(norms.size());
  for (int step = 0; step < steps; ++step) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto batch = batch_of(seed, step);
      for (size_t i = 0; i < all.size(); ++i) {
        Entrant& e = all[i][seed];
        const auto start = Clock::now();
        e.adam->zero_grad();
        const Tensor loss = e.model->loss(batch);
        backward(loss);
        optim::clip_grad_norm(e.model->parameters(), 1.0);
        e.adam->step();
        e.losses.push_back(loss.item());
        ms[i].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
    }
    if (step % 100 != 0) continue;
    std::printf("\n%5d", step);
    for (const auto& seeds : all) std::printf("  %7.4f", mean_loss(seeds, step + 1, 1));
    std::fflush(stdout);
  }
  const NoGrad no_grad;
  std::printf("\n\nnorm      loss  accuracy   least  largest  ms a step  / %s\n", norms.front().name);
  std::vector<double> medians;
  for (size_t i = 0; i < all.size(); ++i) {
    double mean = 0, least = 1, largest = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      Model& model = *all[i][seed].model;
      model.eval();
      double accuracy = 0;
      for (int k = 0; k < kTests; ++k) accuracy += model.accuracy(batch_of(kSeeds + seed, k)) / kTests;
      mean += accuracy / static_cast<double>(kSeeds);
      least = std::min(least, accuracy), largest = std::max(largest, accuracy);
    }
    std::nth_element(ms[i].begin(), ms[i].begin() + std::ssize(ms[i]) / 2, ms[i].end());
    medians.push_back(ms[i][ms[i].size() / 2]);
    std::printf("%-6s  %6.4f  %8.4f  %6.4f  %7.4f  %9.3f  %6.3f\n", norms[i].name,
                mean_loss(all[i], steps, std::min(steps, kLast)), mean, least, largest, medians[i],
                medians[i] / medians[0]);
  }
  std::printf("%d threads, BLAS core %s\n", num_threads(), blas_info().core.c_str());
}
