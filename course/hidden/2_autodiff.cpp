// Hidden tests of lab 2.
#include "labs/2_autodiff.h"

#include <algorithm>
#include <numeric>
#include <random>

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

const Test kOrder(
    "graphs whose entries are in no order", 2,
    [] {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        std::mt19937 draw(static_cast<std::mt19937::result_type>(seed));
        std::vector<size_t> place(12);  // of the entries, in an order in which each has inputs before it
        std::iota(place.begin(), place.end(), 0);
        std::shuffle(place.begin(), place.end(), draw);
        Graph graph(place.size());
        for (size_t i = 1; i < place.size(); ++i)
          for (int k = 0; k < 3; ++k)
            graph[place[i]].push_back({place[draw() % i], static_cast<double>(draw() % 5) - 2});
        const size_t result = place[9];  // entries 10 and 11 do not matter
        // Forward mode: the derivatives of all entries by one.
        std::vector<double> expected(place.size());
        for (const size_t by : place) {
          std::vector<double> slope(place.size());
          for (const size_t i : place) {
            slope[i] = i == by;
            for (const Input& input : graph[i]) slope[i] += input.slope * slope[input.place];
          }
          expected[by] = slope[result];
        }
        expect_close("gradients", from_vector(gradients(graph, result), {12}), from_vector(expected, {12}));
      }
      Graph ladder(60);  // 2^59 paths
      for (size_t i = 1; i < ladder.size(); ++i) ladder[i] = {{i - 1, 0.5}, {i - 1, 0.5}};
      expect_close("gradients", from_vector(gradients(ladder, 59), {60}), ones({60}, {.dtype = DType::f64}));
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
