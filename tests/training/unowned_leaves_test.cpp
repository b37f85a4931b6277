// Leaves that get a gradient and that nothing trains are named once.
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/system/warning.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

// The warnings while it lives.
struct Heard {
  std::vector<std::string> lines;
  WarningHandler before = set_warning_handler([this](const std::string& line) { lines.push_back(line); });
  ~Heard() { set_warning_handler(before); }
};

// A layer, and a factor [n] that is no parameter.
struct Forgotten : nn::Module {
  explicit Forgotten(int64_t n) : w(ones({n})), fc(add("fc", nn::Linear(n, n))) { require_grad(w); }
  Tensor w;
  nn::Linear& fc;
  Tensor forward(const Tensor& x) override { return fc(x) * w; }
};

Tensor mean_square(nn::Module& m, const Examples& batch) { return mean(square(m(batch.inputs) - batch.targets)); }

Examples batch_of(int64_t n) { return {randn({4, n}), randn({4, n})}; }

std::vector<std::string> heard_in_two_steps(nn::Module& model, const Objective& loss, const Examples& batch,
                                            StepOptions options = {}) {
  optim::Sgd sgd(model.parameters(), {.lr = 0.1});
  Step step(model, sgd, loss, options);
  const Heard heard;
  step(batch), step(batch);
  return heard.lines;
}

}  // namespace

TEST_CASE("unowned leaves: a step names a tensor with a gradient that nothing trains, once") {
  Forgotten one(5), parts(6);
  const auto lines = heard_in_two_steps(one, mean_square, batch_of(5));
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("a tensor of shape [5] gets a gradient, and nothing trains it"));
  CHECK(heard_in_two_steps(parts, mean_square, batch_of(6), {.accumulate = 2}).size() == 1);
}

TEST_CASE("unowned leaves: so does a gradient that comparisons take") {
  Forgotten model(7);
  const Heard heard;
  differentiate(model, mean_square, batch_of(7));
  differentiate(model, mean_square, batch_of(7));
  REQUIRE(heard.lines.size() == 1);
  CHECK_THAT(heard.lines[0], Contains("shape [7]"));
}

TEST_CASE("unowned leaves: an optimizer's, another module's, the batch's and the objective's own are none") {
  {
    Forgotten model(8);
    optim::Sgd other({model.w}, {.lr = 0.1});
    CHECK(heard_in_two_steps(model, mean_square, batch_of(8)).empty());
  }
  nn::Linear model(9, 9), teacher(9, 9);
  const auto distilled = [&](nn::Module& m, const Examples& b) {
    return mean(square(m(b.inputs) - teacher(b.inputs)));
  };
  CHECK(heard_in_two_steps(model, distilled, batch_of(9)).empty());
  Examples batch = batch_of(9);
  require_grad(batch.inputs);
  CHECK(heard_in_two_steps(model, mean_square, batch).empty());
  const auto own = [](nn::Module& m, const Examples& b) {
    const Tensor point = require_grad(clone(b.inputs));
    return mean(square(m(point) - b.targets));
  };
  CHECK(heard_in_two_steps(model, own, batch_of(9)).empty());
}
