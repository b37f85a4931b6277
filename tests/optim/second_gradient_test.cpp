// Gradient penalties of a model whose tensors were changed under NoGrad: by an optimizer, an average of weights,
// running statistics.
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/random.h"
#include "nn/parameter_free.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "optim/adam.h"
#include "optim/ema.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

struct Net : nn::Module {
  nn::Linear& fc1 = add("fc1", nn::Linear(3, 5));
  nn::BatchNorm& norm = add("norm", nn::BatchNorm(5));
  nn::Dropout& dropout = add("dropout", nn::Dropout(0.3));
  nn::Linear& fc2 = add("fc2", nn::Linear(5, 2));
  Net() { to(DType::f64); }
  Tensor forward(const Tensor& x) override { return fc2(dropout(tanh(norm(fc1(x))))); }
};

// The mean square of d sum(w model(x)^2) / dx. w is constant: results of another model.
Tensor penalty(nn::Module& model, const Tensor& x, const Tensor& w) {
  manual_seed(7);  // for dropout
  return mean(square(grad(sum(w * square(model(x))), {x}, {}, {.create_graph = true})[0]));
}

}  // namespace

TEST_CASE("gradients of a gradient penalty are right after an optimizer step, an average and a teacher under NoGrad") {
  manual_seed(3);
  Net net, teacher;
  const Tensor x = require_grad(randn({6, 3}, {DType::f64}));
  optim::Adam adam(net.parameters());
  optim::Ema ema(net.parameters(), {.decay = 0.5});
  mean(square(net(x))).backward();
  adam.step();
  ema.update();
  Tensor w;
  {
    const NoGrad no_grad;
    w = square(teacher(x)) + net(x);
  }
  const auto check_all = [&] {
    for (const Tensor& p : net.parameters()) set_grad(p, {});
    penalty(net, x, w).backward();
    for (const Tensor& p : net.parameters()) {
      const Tensor d = sin(arange(0, static_cast<double>(p.numel()), 1, {DType::f64}) + 1.0).reshape(p.shape());
      const double slope = sum(p.grad() * d).item(), h = 0x1p-12;
      const auto at = [&](double by) {
        const Tensor before = p.detach().clone();
        {
          const NoGrad no_grad;
          copy_into(p, before + d * by);
        }
        const double value = penalty(net, x, w).item();
        const NoGrad no_grad;
        copy_into(p, before);
        return value;
      };
      // The error is h^4 f^(5) / 30, 1e-16 f^(5), and the rounding error eps f / h, 1e-12 f.
      const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      CHECK(std::abs(slope - numeric) <= 1e-8 * std::max(1.0, std::abs(numeric)));
    }
  };
  check_all();
  ema.apply();
  check_all();
  ema.restore();
  net.eval();  // now with the running statistics
  check_all();
}
