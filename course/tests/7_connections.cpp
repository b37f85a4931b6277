// Visible tests of lab 7.
#include "labs/7_connections.h"

#include <cmath>

#include "support/tests.h"

namespace course {
namespace {

const Branch kBranch = [](const Tensor& x) { return x.tanh() * 2.0 + 0.5; };

const Test kAlpha("DeepNorm's constant", 1, [] { check(std::abs(alpha(8) - 2) < 1e-15, "alpha(8) is ", alpha(8)); });

const Test kSublayers("pre_ln and post_ln", 2, [] {
  const Tensor x = random({3, 6}, 1);
  expect_close("pre_ln", sublayer(Kind::pre_ln, x, kBranch, 1, 4), x + kBranch(layer_norm(x)));
  expect_close("post_ln", sublayer(Kind::post_ln, x, kBranch, 1, 4), layer_norm(x + kBranch(x)));
  expect_close("head of pre_ln", head_rows(Kind::pre_ln, x), layer_norm(x));
});

const Test kStack("a stack with a single block", 1, [] {
  const Tensor x = random({3, 6}, 2), a = random({6, 6}, 3), b = random({6, 6}, 4);
  const Tensor middle = x + matmul(layer_norm(x), a.transpose()).tanh();
  expect_close("pre_ln", stack_of(Kind::pre_ln, x, {a, b}), middle + matmul(layer_norm(middle), b.transpose()).tanh());
});

const Test kNorms("gradient norms of a block", 1, [] {
  const Tensor x = random({3, 6}, 5), c = random({3, 6}, 6);
  const std::vector<Tensor> w = {random({6, 6}, 7), random({6, 6}, 8)};
  const auto norms = gradient_norms(Kind::post_ln, x, w, c);
  check(norms.size() == 2, "there are ", norms.size(), " norms, expected 2");
  const Tensor a = w[0].clone().require_grad();
  const Tensor g = grad((stack_of(Kind::post_ln, x, {a, w[1]}) * c).sum(), {a})[0];
  expect_close("the first", tensor({norms[0]}), tensor({g.square().sum().sqrt().item()}));
});

}  // namespace
}  // namespace course
