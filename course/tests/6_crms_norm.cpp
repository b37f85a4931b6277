// Visible tests of lab 6.
#include "labs/6_crms_norm.h"

#include "support/tests.h"

namespace course {
namespace {

NormWeights weights(int64_t n, uint64_t seed) { return {random({n}, seed), random({n}, seed + 1), 1e-5}; }

// Gradients of <dy, crms_norm> by autodiff.
NormGradients by_autodiff(const Tensor& v, const NormWeights& w, const Tensor& dy) {
  const Tensor at = v.clone().require_grad(), gain = w.gain.clone().require_grad(),
               bias = w.bias.clone().require_grad();
  const auto g = grad(crms_norm(at, gain, bias, {.eps = w.eps}), {at, gain, bias}, dy);
  return {g[0], g[1], g[2]};
}

const Test kForward("forward of [4, 6]", 1, [] {
  const Tensor v = random({4, 6}, 1);
  const NormWeights w = weights(6, 2);
  expect_close("y", crms_norm_forward(v, w), crms_norm(v, w.gain, w.bias));
});

const Test kBackward("backward of [4, 6]", 2, [] {
  const Tensor v = random({4, 6}, 1), dy = random({4, 6}, 4);
  const NormWeights w = weights(6, 2);
  const NormGradients got = crms_norm_backward(v, w, dy), expected = by_autodiff(v, w, dy);
  expect_close("dgain", got.gain, expected.gain);
  expect_close("dbias", got.bias, expected.bias);
  expect_close("dv", got.x, expected.x);
});

// D [d, d - 1].
Tensor restoring(int64_t d) {
  const TensorOptions f64{.dtype = DType::f64};
  return cat({eye(d - 1, -1, f64), full({1, d - 1}, -1, f64)}, 0);
}

const Test kMetric("the directions have the factors (D^T D)^-1 and D^T D", 2, [] {
  const Tensor d = restoring(5), metric = matmul(d.transpose(), d);
  const Tensor db = random({4, 3}, 7), da = random({3, 4}, 8);
  expect_close("D^T D writer_direction(db)", matmul(metric, writer_direction(db)), db);
  expect_close("reader_direction(da)", reader_direction(da), matmul(da, metric));
});

const Test kAccepts("your test accepts CRMSNorm and rejects RMSNorm", 1, [] {
  check(accepts_crms_norm(
            {[](const Tensor& v, const NormWeights& w) { return crms_norm(v, w.gain, w.bias, {.eps = w.eps}); },
             [](const Tensor& v, const NormWeights& w, const Tensor& dy) { return by_autodiff(v, w, dy); }}),
        "it rejects the library's");
  check(!accepts_crms_norm(
            {[](const Tensor& v, const NormWeights& w) { return rms_norm(v, w.gain, w.bias, {.eps = w.eps}); },
             [](const Tensor& v, const NormWeights& w, const Tensor& dy) { return by_autodiff(v, w, dy); }}),
        "it accepts an RMSNorm forward");
});

}  // namespace
}  // namespace course
