// Hidden tests of lab 7.
#include "labs/7_connections.h"

#include <cmath>

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
    "sub-layers and heads are those of the library's connections", 3,
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
              kind, rows, [&](const Tensor& r) { return matmul(r, weights[i].transpose()).tanh(); }, static_cast<int64_t>(i / 2 + 1), 3);
        expect_close(library.name, stack_of(kind, x, weights), rows);
      }
    },
    Seen::hidden);

const Test kEven(
    "which gradients are even over 32 blocks", 2,
    [] {
      const Tensor x = random({8, 32}, 22), c = random({8, 32}, 23);
      std::vector<Tensor> weights;
      for (uint64_t i = 0; i < 64; ++i) weights.push_back(random({32, 32}, 100 + i) / std::sqrt(32.));
      for (const auto& [kind, library] : kRows) {
        const auto norms = gradient_norms(kind, x, weights, c);
        const double ratio = norms.front() / norms.back();
        std::printf("%s: %.3g\n", library.name, ratio);
        check(predicts_even(kind) == (ratio >= 0.1 && ratio <= 10), library.name, ": the first gradient is ", ratio,
              " of the last one");
      }
    },
    Seen::hidden);

}  // namespace
}  // namespace course
