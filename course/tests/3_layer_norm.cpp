// Visible tests of lab 3.
#include "labs/3_layer_norm.h"

#include "support/tests.h"

namespace course {
namespace {

NormWeights weights(int64_t n, uint64_t seed) { return {random({n}, seed), random({n}, seed + 1), 1e-5}; }

Tensor formula(const Tensor& x, const NormWeights& w, double outside, double inside) {
  const Tensor c = x - x.mean(-1, true);
  return c / ((c.square().mean(-1, true) + inside).sqrt() + outside) * w.gain + w.bias;
}

// A forward with the backward that autodiff derives from it.
NormUnderTest differentiated(Tensor (*f)(const Tensor&, const NormWeights&)) {
  return {[f](const Tensor& x, const NormWeights& w) { return f(x, w); },
          [f](const Tensor& x, const NormWeights& w, const Tensor& dy) -> NormGradients {
            const Tensor at = x.clone().require_grad();
            const NormWeights leaves{w.gain.clone().require_grad(), w.bias.clone().require_grad(), w.eps};
            const auto g = grad(f(at, leaves), {at, leaves.gain, leaves.bias}, dy);
            return {g[0], g[1], g[2]};
          }};
}

const Test kForward("forward of [4, 6]", 1, [] {
  const Tensor x = random({4, 6}, 1);
  const NormWeights w = weights(6, 2);
  expect_close("y", layer_norm_forward(x, w), layer_norm(x, w.gain, w.bias));
});

const Test kBackward("backward of [4, 6]", 2, [] {
  const Tensor x = random({4, 6}, 1), dy = random({4, 6}, 4);
  const NormWeights w = weights(6, 2);
  const NormGradients got = layer_norm_backward(x, w, dy);
  const Tensor at = x.clone().require_grad(), gain = w.gain.clone().require_grad(),
               bias = w.bias.clone().require_grad();
  const auto g = grad(layer_norm(at, gain, bias), {at, gain, bias}, dy);
  expect_close("dgain", got.gain, g[1]);
  expect_close("dbias", got.bias, g[2]);
  expect_close("dx", got.x, g[0]);
});

const Test kAccepts("your test accepts LayerNorm", 1, [] {
  check(
      accepts_layer_norm(differentiated([](const Tensor& x, const NormWeights& w) { return formula(x, w, 0, w.eps); })),
      "it rejects the formula with the backward of autodiff");
});

const Test kRejects("your test rejects eps outside of the root", 1, [] {
  check(!accepts_layer_norm(
            differentiated([](const Tensor& x, const NormWeights& w) { return formula(x, w, w.eps, 0); })),
        "it accepts c / (sqrt(var) + eps)");
});

}  // namespace
}  // namespace course
