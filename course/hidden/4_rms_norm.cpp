// Hidden tests of lab 4.
#include "labs/4_rms_norm.h"

#include "support/tests.h"

namespace course {
namespace {

// The gradient of <dy, f(x)> with respect to x.
template <class F> Tensor slope(F f, const Tensor& x, const Tensor& dy) {
  const Tensor at = x.clone().require_grad();
  return grad(f(at), {at}, dy)[0];
}

const Test kShapes(
    "other shapes and an eps that counts", 2,
    [] {
      for (const Dims& shape : {Dims{5}, Dims{3, 1}, Dims{2, 3, 9}}) {
        const Tensor x = random(shape, 10) + 1.0, dy = random(shape, 11);
        expect_close("y", rms_norm_op(x, 0.3), rms_norm(x, {.eps = 0.3}));
        expect_close("dx", slope([](const Tensor& t) { return rms_norm_op(t, 0.3); }, x, dy),
                     slope([](const Tensor& t) { return rms_norm(t, {.eps = 0.3}); }, x, dy));
      }
    },
    Seen::hidden);

const Test kInside(
    "it hands the gradient on to what made x", 1,
    [] {
      const Tensor w = random({6, 4}, 12), z = random({4, 5}, 13), dy = random({5, 6}, 14);
      const auto through = [&](auto norm) {
        return slope([&](const Tensor& t) { return norm(matmul(t, z).transpose()); }, w, dy);
      };
      expect_close("dW", through([](const Tensor& t) { return rms_norm_op(t); }),
                   through([](const Tensor& t) { return rms_norm(t); }));
    },
    Seen::hidden);

const Test kNoGraph(
    "without a gradient there is no graph", 1,
    [] {
      check(!rms_norm_op(random({2, 3}, 15)).requires_grad(), "an op was recorded for a tensor that takes no gradient");
    },
    Seen::hidden);

const Test kShares(
    "shares of the entries, and their gradients", 1,
    [] {
      const Tensor x = random({3, 7}, 16), dy = random({3, 7}, 17);
      for (double p : {0.01, 0.3, 0.5, 1.}) {
        expect_close("y", partial_rms_norm(x, p), rms_norm(x, {.p = p}));
        expect_close("dx", slope([p](const Tensor& t) { return partial_rms_norm(t, p); }, x, dy),
                     slope([p](const Tensor& t) { return rms_norm(t, {.p = p}); }, x, dy));
      }
    },
    Seen::hidden);

const Test kLayerGradient(
    "LayerNorm's gradient by RMSNorm's", 1,
    [] {
      const Tensor x = random({4, 9}, 18) + 3.0, dy = random({4, 9}, 19);
      expect_close("dx", slope([](const Tensor& t) { return layer_norm_by_rms(t); }, x, dy),
                   slope([](const Tensor& t) { return layer_norm(t); }, x, dy));
    },
    Seen::hidden);

}  // namespace
}  // namespace course
