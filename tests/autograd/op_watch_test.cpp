#include "autograd/node.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "core/view.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("op watch: watches nest, and the outer one may change a result before the inner one sees it") {
  const Tensor x = require_grad(tensor({2.0}));
  std::vector<std::string> seen;
  const autograd::OpWatch outer([&](const autograd::Node& node, std::span<const Tensor* const> results) {
    seen.push_back(std::string("outer ") + node.name);
    fill(detach(*results[0]), 7);
  });
  {
    const autograd::OpWatch inner([&](const autograd::Node& node, std::span<const Tensor* const> results) {
      seen.push_back(std::string("inner ") + node.name);
      CHECK(results[0]->item() == 7);
    });
    CHECK(mul(x, x).item() == 7);
  }
  exp(x);
  NoGrad no_grad;
  exp(x);  // is not recorded
  CHECK(seen == std::vector<std::string>{"outer mul", "inner mul", "outer exp"});
}
