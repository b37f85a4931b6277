// Weights that are moved only by rounding noise, through a parameter map.
#include "autograd/ops/shape.h"
#include "equivalence/compare/compare.h"
#include "optim/adam.h"
#include "tests/equivalence/room.h"

namespace {

// Logits x w^T + the sum of `shift`, which cross entropy ignores, so the gradient of `shift` is only rounding errors.
// `halves`: x w^T is added from two halves of x, with other rounding.
struct Shifted : nn::Module {
  bool halves;
  nn::Parameter &weight, &shift;
  Shifted(bool h, const Dims& shape)
      : halves(h), weight(add_parameter("weight", randn({4, 8}))), shift(add_parameter("shift", randn(shape))) {
    to(DType::f64);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor w = transpose(weight(), 0, 1);
    const auto half = [&](int64_t begin) { return matmul(narrow(x, 1, begin, 4), narrow(w, 0, begin, 4)); };
    return (halves ? half(0) + half(4) : matmul(x, w)) + sum(shift());
  }
};

}  // namespace

TEST_CASE("mapped noise: entries that only noise moves stay ignored after a reshape") {
  const MakeOptimizer adam = [](const std::vector<Tensor>& p) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .eps = 1e-30});
  };
  const auto rows = [](int64_t step) {
    Generator g{9, static_cast<uint64_t>(step) << 20};
    return Examples{randn({6, 8}, {DType::f64}, g), randint(0, 4, {6}, kCpu, g)};
  };
  for (const uint64_t seed : {1, 2, 3}) {
    manual_seed(seed);
    const ParameterMap flat = ParameterMap().add("shift", "shift", {{.map = "reshape", .shape = {6}}});
    const Comparison c = compare_trajectories(
        [] {
          return std::make_unique<Shifted>(false, Dims{2, 3});
        },
        [] { return std::make_unique<Shifted>(true, Dims{6}); }, flat, cross_entropy_of, adam, rows,
        {.steps = 20, .seed = seed});
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}
