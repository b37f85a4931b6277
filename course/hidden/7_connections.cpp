// Hidden tests of lab 7.
#include "labs/7_connections.h"

#include <cmath>
#include <cstdio>
#include <iterator>

#include <isonorm/nn/residual/all.h>

#include "support/tests.h"

namespace course {
namespace {

struct Row {
  Kind kind;
  const nn::Arrangement& library;
};
const Row kRows[] = {{Kind::pre_ln, nn::kPreLn},
                     {Kind::post_ln, nn::kPostLn},
                     {Kind::deepnorm, nn::kDeepNorm},
                     {Kind::sandwich, nn::kSandwich},
                     {Kind::layer_norm_scaling, nn::kLayerNormScaling}};

const Test kLibrary(
    "sub-layers and heads equal the library's connections", 3,
    [] {
      const Branch f = [](const Tensor& r) { return r.tanh() * 2.0 + 0.5; };
      for (const auto& [kind, library] : kRows) {
        const Tensor x = random({2, 3, 6}, 20);
        const auto block = library.block(6, {}, {.index = 3, .depth = 8});
        nn::Residual r(x);
        block.mlp->join(r, f(block.mlp->read(r)));
        expect_close(library.name, sublayer(kind, x, f, 4, 8), r.settle());
        nn::Residual end(x);
        expect_close("head", head_rows(kind, x), library.last(6, {})->read(end));
      }
    },
    Seen::hidden);

const Test kPlaces(
    "the sub-layers of a stack know their block", 2,
    [] {
      const Tensor x = random({3, 6}, 21);
      std::vector<Tensor> weights;
      for (uint64_t i = 0; i < 6; ++i) weights.push_back(random({6, 6}, 30 + i));
      for (const auto& [kind, library] : kRows) {
        Tensor rows = x;
        for (size_t i = 0; i < 6; ++i)
          rows = sublayer(
              kind, rows, [&](const Tensor& r) { return matmul(r, weights[i].transpose()).tanh(); },
              static_cast<int64_t>(i / 2 + 1), 3);
        expect_close(library.name, stack_of(kind, x, weights), rows);
      }
    },
    Seen::hidden);

// The gradient norm of the last sub-layer in a stack of `blocks`, averaged over three random draws.
double last_norm(Kind kind, size_t blocks) {
  double mean = 0;
  for (uint64_t seed : {1000u, 2000u, 3000u}) {
    std::vector<Tensor> weights;
    for (size_t i = 0; i < 2 * blocks; ++i) weights.push_back(random({32, 32}, seed + 2 + i) / std::sqrt(32.));
    mean += gradient_norms(kind, random({8, 32}, seed), weights, random({8, 32}, seed + 1)).back() / 3;
  }
  return mean;
}

const Test kRest(
    "what depth leaves of the last gradient", 2,
    [] {
      double right = 0;
      for (const auto& [kind, library] : kRows) {
        const double rest = last_norm(kind, 32) / last_norm(kind, 2), said = predicted_rest(kind);
        const bool close = said >= rest / 1.6 && said <= rest * 1.6;
        if (!close) std::printf("%s: %g is not within a factor of 1.6\n", library.name, said);
        right += close;
      }
      return right / std::size(kRows);
    },
    Seen::hidden);

}  // namespace
}  // namespace course
