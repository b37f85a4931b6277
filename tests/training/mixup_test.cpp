// A training step on mixed images against the two cross-entropies written out, in parts of the batch and by several
// ranks.
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "distributed/world.h"
#include "io/data/augment.h"
#include "nn/linear.h"
#include "tests/support/catch.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::training;
using Doubles = std::vector<double>;

namespace {

constexpr int kRows = 6, kIn = 5, kClasses = 3;

struct Written {
  double loss = 0;
  Doubles gradient = Doubles(kClasses * kIn);
};

// Adds `share` of the mean of -ln softmax(W x)[label] and of its gradient (p - [label]) x^T.
void add_cross_entropy(Written& w, double share, const Doubles& weight, const Doubles& x,
                       const std::vector<int>& label) {
  for (int r = 0; r < kRows; ++r) {
    Doubles e(kClasses);
    double sum = 0;
    for (int c = 0; c < kClasses; ++c) {
      for (int i = 0; i < kIn; ++i) e[c] += weight[c * kIn + i] * x[r * kIn + i];
      sum += e[c] = std::exp(e[c]);
    }
    w.loss -= share / kRows * std::log(e[label[r]] / sum);
    for (int c = 0; c < kClasses; ++c)
      for (int i = 0; i < kIn; ++i)
        w.gradient[c * kIn + i] += share / kRows * (e[c] / sum - (c == label[r])) * x[r * kIn + i];
  }
}

}  // namespace

TEST_CASE("mixup: loss and gradient are lambda times the labels' plus 1 - lambda times the partners'") {
  Generator generator{8, 0};
  const Doubles images = randn({kRows, kIn}, {DType::f64}, generator).to_vector<double>();
  const std::vector<int> own = {0, 1, 2, 1, 0, 2}, partner = {1, 2, 1, 0, 2, 0};
  for (const auto& [parts, ranks] : {std::pair{1, 1}, {3, 1}, {1, 2}, {2, 3}, {1, 4}})
    distributed::run_ranks(ranks, [&, parts = parts](distributed::Group& group) {
      const Tensor x = from_vector(images, {kRows, kIn});
      const Tensor q = data::mix(x, from_vector(std::vector<int64_t>(own.begin(), own.end()), {kRows}),
                                 {.alpha = 0.7, .classes = kClasses}, 4, 5);
      const double share = q.data<double>()[own[0]];
      REQUIRE((share > 0.05 && share < 0.95));
      Doubles mixed(images.size());
      for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < kIn; ++i)
          mixed[r * kIn + i] = share * images[r * kIn + i] + (1 - share) * images[(r + 1) % kRows * kIn + i];
      Generator drawn{2, 0};
      nn::Linear model{kIn, kClasses, {.bias = false}};
      model.to(DType::f64);
      copy_into(model.parameters()[0], randn({kClasses, kIn}, {DType::f64}, drawn));
      const Doubles weight = model.parameters()[0].to_vector<double>();
      Written expected;
      add_cross_entropy(expected, share, weight, mixed, own);
      add_cross_entropy(expected, 1 - share, weight, mixed, partner);
      const double loss = differentiate(model, cross_entropy_of, {x, q}, parts, &group);
      const Doubles gradient = model.parameters()[0].grad().to_vector<double>();
      const double bound = 16 * epsilon(DType::f64) * std::sqrt(kRows * kIn);  // of terms of size 1
      CHECK(std::abs(loss - expected.loss) <= bound);
      for (size_t i = 0; i < gradient.size(); ++i) CHECK(std::abs(gradient[i] - expected.gradient[i]) <= bound);
    });
}
