// Hidden tests of lab 2.
#include "labs/2_autodiff.h"

#include "support/tests.h"

namespace course {
namespace {

const Test kChain(
    "a hundred steps, and an entry that the result does not need", 2,
    [] {
      Tape t;
      const Var a = t.leaf(0.3), unused = t.tanh(a);
      Var y = a;
      for (int i = 0; i < 100; ++i) y = t.add(t.tanh(t.mul(y, a)), a);
      const Var later = t.mul(y, y);
      const Tensor leaf = tensor({0.3}).require_grad();
      Tensor z = leaf;
      for (int i = 0; i < 100; ++i) z = (z * leaf).tanh() + leaf;
      const auto g = t.backward(y);
      check(g[unused.place] == 0 && g[later.place] == 0, "a leaf that the result does not depend on has a gradient");
      expect_close("gradient", tensor({g[a.place]}), grad(z, {leaf})[0], 200);
    },
    Seen::hidden);

const Test kSame(
    "a + a and a a", 1,
    [] {
      Tape t;
      const Var a = t.leaf(-1.5), y = t.mul(t.add(a, a), t.mul(a, a));
      expect_close("d(2 a^3)/da", tensor({t.backward(y)[a.place]}), tensor({13.5}));
      expect_close("again", tensor({t.backward(y)[a.place]}), tensor({13.5}));
    },
    Seen::hidden);

const Test kUnchanged(
    "numeric_gradient leaves x alone", 1,
    [] {
      const Tensor x = random({3}, 4), before = x.clone();
      check(deviation(numeric_gradient([](const Tensor& t) { return t.square().sum(); }, x), before * 2.0) < 1e-8,
            "wrong");
      check(deviation(x, before) == 0, "x was changed");
    },
    Seen::hidden);

const Test kCross(
    "a Hessian with entries off its diagonal", 2,
    [] {
      const Tensor m = random({5, 5}, 5), x = random({5, 1}, 6), v = random({5, 1}, 7);
      const Scalar f = [&](const Tensor& t) { return matmul(t.transpose(), matmul(m, t)).sum(); };
      expect_close("H v", hessian_times(f, x, v), matmul(m + m.transpose(), v));
    },
    Seen::hidden);

}  // namespace
}  // namespace course
