// Tensors that rules keep: exact ones, and activations rounded to bf16 while a SaveActivations guard lives.
#include "autograd/saved.h"

#include "tests/support/compare.h"
#include "tests/support/same_bytes.h"
#include "tests/autograd/room.h"

using List = std::vector<Tensor>;

namespace {

using Function = std::function<Tensor(const List&)>;

Tensor randn(const Dims& shape, unsigned seed) { return test::randn(shape, seed, 0, 1, DType::f32); }
Tensor rounded(const Tensor& x) { return x.to(DType::bf16).to(DType::f32); }
Tensor wide(const Tensor& x) { return x.to(DType::f64); }
// The value that a rule finds, as f64.
Tensor kept(const Tensor& x) { return wide(rounded(x.to(DType::f32))); }
bool is_exact(const Saved& s, const Tensor& x) { return s.get().data<float>() == x.data<float>(); }

// The value, then the gradients of all inputs.
List run(const Function& f, const List& inputs, const Tensor& cotangent) {
  List leaves;
  for (const Tensor& x : inputs) leaves.push_back(require_grad(detach(x)));
  const Tensor y = f(leaves);
  List all = grad({&y, 1}, leaves, {&cotangent, 1});
  all.insert(all.begin(), y);
  return all;
}
List run_rounded(const Function& f, const List& inputs, const Tensor& cotangent) {
  const SaveActivations guard(DType::bf16);
  return run(f, inputs, cotangent);
}

// Error of sums of products with `length` terms in f32, and of results computed from a few of these sums.
double tolerance(double length) { return 16 * epsilon(DType::f32) * std::sqrt(length); }

}  // namespace

TEST_CASE("linear and activation functions: the gradient is that at the rounded input, the value that at the input") {
  const Tensor x = randn({64, 40}, 1), w = randn({24, 40}, 2), b = randn({24}, 3), dy = randn({64, 24}, 4);
  const Function f = [](const List& t) { return linear(t[0], t[1], t[2]); };
  const auto exact = run(f, {x, w, b}, dy), at_rounded = run(f, {rounded(x), w, b}, dy);
  const auto guarded = run_rounded(f, {x, w, b}, dy);
  CHECK(same_bytes(guarded[0], exact[0]));
  CHECK(same_bytes(guarded[1], exact[1]));  // dx = dy w: weights are exact
  CHECK(same_bytes(guarded[2], at_rounded[2]));
  CHECK_FALSE(same_bytes(guarded[2], exact[2]));
  CHECK(same_bytes(guarded[3], exact[3]));

  const Tensor cotangent = randn({64, 40}, 5);
  for (Tensor (*op)(const Tensor&) : {gelu, gelu_tanh, silu, softplus}) {
    const Function g = [op](const List& t) { return op(t[0]); };
    const auto result = run_rounded(g, {x}, cotangent);
    CHECK(same_bytes(result[0], op(x)));
    CHECK(same_bytes(result[1], run(g, {rounded(x)}, cotangent)[1]));
  }
}

TEST_CASE("functions that keep their result round it for the gradient") {
  const Tensor x = randn({64, 40}, 1), dy = randn({64, 40}, 2);
  const auto tanh_of = run_rounded([](const List& t) { return tanh(t[0]); }, {x}, dy);
  check_close(tanh_of[1], mul(wide(dy), sub(1.0, square(kept(tanh_of[0])))), tolerance(1));
  const auto p = run_rounded([](const List& t) { return softmax(t[0], -1); }, {x}, dy);
  const Tensor y = kept(p[0]);
  check_close(p[1], mul(y, sub(wide(dy), sum(mul(wide(dy), y), {-1}, true))), tolerance(40));
}

TEST_CASE("norms: rows are rounded, statistics and gain are not") {
  const Tensor x = randn({64, 48}, 1), gain = randn({48}, 2), dy = randn({64, 48}, 3);
  const Tensor rstd = rsqrt(add(mean(square(wide(x)), {-1}, true), 1e-5));
  // dx = rstd (d - n mean(d n)), with d the gradient of the normalized row n.
  const auto dx = [&](const Tensor& d, const Tensor& n) {
    return mul(rstd, sub(d, mul(n, mean(mul(d, n), {-1}, true))));
  };
  const auto with_gain =
      run_rounded([](const List& t) { return rms_norm(t[0], t[1], {}, {.eps = 1e-5}); }, {x, gain}, dy);
  const Tensor n = mul(kept(x), rstd);
  check_close(with_gain[1], dx(mul(wide(dy), wide(gain)), n), tolerance(48));
  check_close(with_gain[2], sum(mul(wide(dy), n), {0}), tolerance(64));
  const auto bare = run_rounded([](const List& t) { return rms_norm(t[0], {}, {}, {.eps = 1e-5}); }, {x}, dy);
  check_close(bare[1], dx(wide(dy), kept(bare[0])), tolerance(48));
}

TEST_CASE("mlp: input and hidden entries are rounded, weights are not") {
  const Tensor x = randn({64, 32}, 1), w1 = randn({48, 32}, 2), b1 = randn({48}, 3), w2 = randn({32, 48}, 4),
               b2 = randn({32}, 5), dy = randn({64, 32}, 6);
  const auto r = run_rounded([](const List& t) { return mlp(t[0], t[1], t[2], t[3], t[4]); }, {x, w1, b1, w2, b2}, dy);
  const Tensor h = require_grad(kept(linear(x, w1, b1))), d = wide(dy), a = gelu(h);
  const Tensor dh = grad(a, {h}, matmul(d, wide(w2)))[0];
  check_close(r[1], matmul(dh, wide(w1)), tolerance(48 * 32));
  check_close(r[2], matmul(transpose(dh, 0, 1), kept(x)), tolerance(64 * 32));
  check_close(r[3], sum(dh, {0}), tolerance(64 * 32));
  check_close(r[4], matmul(transpose(d, 0, 1), detach(a)), tolerance(64));
  check_close(r[5], sum(d, {0}), tolerance(64));
}

TEST_CASE("attention: its inputs and its result are rounded, the sums of the softmax are not") {
  const Dims shape{2, 3, 24, 16};
  const Tensor q = randn(shape, 1), k = randn(shape, 2), v = randn(shape, 3), dy = randn(shape, 4);
  const auto expected = [&](const Tensor& out) {
    const double scale = 1 / std::sqrt(16.0);
    const Tensor lse = logsumexp(mul(matmul(wide(q), transpose(wide(k), -1, -2)), scale), {-1}, true);
    const Tensor p = exp(sub(mul(matmul(kept(q), transpose(kept(k), -1, -2)), scale), lse)), d = wide(dy);
    const Tensor dp = matmul(d, transpose(kept(v), -1, -2)), shift = sum(mul(d, kept(out)), {-1}, true);
    const Tensor ds = mul(mul(p, sub(dp, shift)), scale);
    return List{matmul(ds, kept(k)), matmul(transpose(ds, -1, -2), kept(q)), matmul(transpose(p, -1, -2), d)};
  };
  const auto r =
      run_rounded([](const List& t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }, {q, k, v}, dy);
  const auto separate = expected(r[0]);
  for (int i : {0, 1, 2}) check_close(r[1 + i], separate[i], tolerance(24 * 16));

  // The same heads side by side in the rows of a single tensor.
  const auto pack = [](const Tensor& x) { return reshape(contiguous(transpose(x, 1, 2)), {2, 24, 48}); };
  const Tensor qkv = cat({pack(q), pack(k), pack(v)}, -1);
  const auto packed = run_rounded([](const List& t) { return packed_attention(t[0], 3); }, {qkv}, pack(dy));
  check_close(packed[1], cat({pack(separate[0]), pack(separate[1]), pack(separate[2])}, -1), tolerance(24 * 16));
}

TEST_CASE("weights, general arithmetic, other dtypes and small tensors are kept unchanged") {
  const Tensor x = randn({64, 64}, 1), y = randn({64, 64}, 2), dy = randn({64, 64}, 3);
  for (const Function& f : {Function([](const List& t) { return mul(t[0], t[1]); }),
                            Function([](const List& t) { return matmul(t[0], t[1]); }),
                            Function([](const List& t) { return linear(t[0], recentre(t[1], 0)); })}) {
    const auto exact = run(f, {x, y}, dy), guarded = run_rounded(f, {x, y}, dy);
    CHECK(same_bytes(guarded[1], exact[1]));
  }
  const SaveActivations guard(DType::bf16);
  const Tensor small = randn({1023}, 4), large = randn({1024}, 5), f64 = wide(large), bf16 = large.to(DType::bf16);
  CHECK(is_exact(save_activation(small), small));
  CHECK_FALSE(is_exact(save_activation(large), large));
  CHECK(is_exact(save(large), large));
  CHECK(save_activation(f64).get().data<double>() == f64.data<double>());
  CHECK(save_activation(bf16).get().dtype() == DType::bf16);
  CHECK_FALSE(save_activation({}).get().defined());
  const Tensor repeated = expand(randn({64, 1}, 6), {64, 64});  // a copy would be larger
  CHECK(is_exact(save_activation(repeated), repeated));
}

TEST_CASE("SaveActivations holds while it lives, in its thread, and the innermost one counts") {
  const Tensor x = randn({64, 64}, 1);
  CHECK(is_exact(save_activation(x), x));
  {
    const SaveActivations guard(DType::bf16);
    CHECK_FALSE(is_exact(save_activation(x), x));
    {
      const SaveActivations off(DType::f32);
      CHECK(is_exact(save_activation(x), x));
    }
    CHECK_FALSE(is_exact(save_activation(x), x));
    CHECK_THROWS_WITH(SaveActivations(DType::i64), Contains("save_activations: dtype is i64"));
    CHECK_FALSE(is_exact(save_activation(x), x));
  }
  CHECK(is_exact(save_activation(x), x));
}

TEST_CASE("a rounded tensor has the values of the moment when it was kept") {
  const SaveActivations guard(DType::bf16);
  const Tensor x = randn({64, 64}, 1), before = rounded(x);
  const Saved first = save_activation(x), exact = save(x);
  fill(x, 3);
  const Saved second = save_activation(x);
  CHECK(same_bytes(first.get(), before));
  CHECK(same_bytes(second.get(), x));
  CHECK_THROWS_WITH(exact.get(), Contains("changed in place"));
  // Halves of one storage, a transposed view, and a storage at the address of an earlier one.
  const Tensor y = randn({64, 64}, 2), low = narrow(y, 0, 0, 32), high = narrow(y, 0, 32, 32),
               flipped = transpose(y, 0, 1);
  const Saved a = save_activation(low), b = save_activation(high), c = save_activation(flipped);
  CHECK(same_bytes(a.get(), rounded(low)));
  CHECK(same_bytes(b.get(), rounded(high)));
  CHECK(same_bytes(c.get(), rounded(flipped)));
  std::vector<Saved> all;
  List expected;
  for (unsigned i = 0; i < 200; ++i) {
    const Tensor passing = randn({32, 32}, i);
    all.push_back(save_activation(passing));
    expected.push_back(rounded(passing));
  }
  for (size_t i = 0; i < all.size(); ++i) REQUIRE(same_bytes(all[i].get(), expected[i]));
}

TEST_CASE("a tensor that several ops keep is one copy") {
  const auto in_use = [] { return host_allocator().stats().current; };
  const Tensor x = require_grad(randn({256, 256}, 1)), w = require_grad(randn({256, 256}, 2));
  const int64_t matrix = 256 * 256 * 4;
  const auto bytes_of_graph = [&] {
    const int64_t before = in_use();
    const Tensor y = [&] {
      const Tensor rows = rms_norm(x);
      return linear(reshape(rows, {16, 16, 256}), w);
    }();
    return in_use() - before;
  };
  // The result, the statistics, and the rows, which both norm and linear keep.
  const int64_t statistics = 256 * 2 * 4;
  CHECK(bytes_of_graph() == 2 * matrix + statistics);
  const SaveActivations guard(DType::bf16);
  CHECK(bytes_of_graph() == matrix + matrix / 2 + statistics);
}
