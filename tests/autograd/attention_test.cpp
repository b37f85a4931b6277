// Attention beyond its rows in tests/op_cases: several tiles, masks of every shape, large scores, memory.
#include "tests/autograd/room.h"

using test::max_difference;
using test::randn;
using List = std::vector<Tensor>;

namespace {

struct Case {
  int64_t batch, heads, queries, keys, size, values;
  bool causal, from_last = false;
};
// More than one tile of queries and of keys (64; 128 queries if there are more than 512 keys); different lengths and
// sizes.
const Case kCases[] = {{1, 2, 130, 40, 5, 16, false},      {2, 1, 70, 70, 17, 17, true},
                       {1, 2, 200, 200, 8, 8, true},       {1, 1, 9, 1100, 4, 6, false},
                       {1, 1, 1100, 1100, 3, 2, true},     {1, 2, 130, 237, 5, 16, true, true},
                       {1, 1, 237, 130, 4, 3, true, true}, {1, 1, 200, 171, 8, 8, true, true}};

List inputs(const Case& c, DType dtype = DType::f64) {
  return {randn({c.batch, c.heads, c.queries, c.size}, 1, 0, 1, dtype),
          randn({c.batch, c.heads, c.keys, c.size}, 2, 0, 1, dtype),
          randn({c.batch, c.heads, c.keys, c.values}, 3, 0, 1, dtype)};
}

List value_and_gradients(const List& in, const AttentionOptions& o) {
  List leaves;
  for (const Tensor& x : in) leaves.push_back(require_grad(detach(x)));
  const Tensor y = leaves.size() == 1 ? packed_attention(leaves[0], 2, o)
                                      : scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], o);
  List all = grad(List{y}, leaves, List{randn(y.shape(), 9, 0, 1, y.dtype())});
  all.insert(all.begin(), y);
  return all;
}

void check_against_reference(const List& in, const AttentionOptions& o, double tolerance) {
  const auto fused = value_and_gradients(in, o);
  const auto composed = [&] {
    UseReference guard;
    return value_and_gradients(in, o);
  }();
  for (size_t i = 0; i < fused.size(); ++i) {
    INFO("tensor " << i);
    CHECK(max_difference(fused[i], composed[i]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("attention over several tiles agrees with its composition") {
  for (const Case& c : kCases) {
    INFO(c.queries << " x " << c.keys << " causal " << c.causal);
    const AttentionOptions o{.causal = c.causal, .from_last = c.from_last};
    check_against_reference(inputs(c), o, 2e-13);
    for (DType dtype : {DType::f64, DType::f32}) {
      const List x = inputs(c, dtype);
      const Tensor exact =
          reference::scaled_dot_product_attention(x[0].to(DType::f64), x[1].to(DType::f64), x[2].to(DType::f64), o);
      // Weights sum to 1 and values are below 5: roundings of a dot product of scores near 4, then of a mean.
      CHECK(max_difference(scaled_dot_product_attention(x[0], x[1], x[2], o), exact) < 100 * epsilon(dtype));
    }
  }
  for (bool causal : {false, true})
    for (int64_t t : {75, 150}) check_against_reference({randn({3, t, 2 * 3 * 5}, 4)}, {.causal = causal}, 2e-13);
  check_against_reference({randn({2, 40, 2 * 3 * 8}, 4, 0, 1, DType::f32)}, {}, 60 * 0x1p-23);
}

TEST_CASE("masks broadcast, hide keys exactly, and may take a gradient") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor q = randn({2, 3, 6, 4}, 6), k = randn({2, 3, 7, 4}, 7), v = randn({2, 3, 7, 5}, 8);
  for (const Dims& shape : {Dims{7}, Dims{6, 1}, Dims{2, 1, 1, 7}, Dims{3, 6, 7}, Dims{2, 3, 6, 7}}) {
    const Tensor mask = randn(shape, 10);
    for (bool causal : {false, true}) check_against_reference({q, k, v}, {.causal = causal, .mask = mask}, 1e-13);
    // A mask with a single number for each query changes all its scores alike, so its gradient is zero.
    const auto r = gradcheck([&](const List& x) { return scaled_dot_product_attention(q, k, v, {.mask = x[0]}); },
                             {mask}, {.zero = mask.size(-1) == 1});
    INFO(r.message());
    CHECK(r.ok);
  }
  // A hidden key has no influence: the result has the same bits whatever its value, and its gradients are exactly 0.
  const Tensor hide = from_vector<double>({0, 0, -inf, 0, -inf, 0, 0}, {7});
  const Tensor changed = empty_like(v);
  copy_into(changed, v);
  fill(slice(changed, 2, 2, 3), 1e6);
  CHECK(max_difference(scaled_dot_product_attention(q, k, v, {.mask = hide}),
                       scaled_dot_product_attention(q, k, changed, {.mask = hide})) == 0);
  const auto all = value_and_gradients({q, k, v}, {.mask = hide});
  CHECK(sum(abs(slice(all[2], 2, 2, 3))).item() == 0);
  CHECK(sum(abs(slice(all[3], 2, 4, 5))).item() == 0);
  // Hidden in the whole first tile of keys, seen in the second.
  Tensor long_mask = randn({700}, 11);
  fill(slice(long_mask, 0, 0, 600), -inf);
  check_against_reference({randn({1, 1, 4, 3}, 12), randn({1, 1, 700, 3}, 13), randn({1, 1, 700, 3}, 14)},
                          {.mask = long_mask}, 1e-13);
  // Queries that see nothing give 0 and get no gradient; other queries do not change.
  const Tensor blind = from_vector<double>({0, -inf, 0, 0, -inf, 0}, {6, 1});
  const auto some = value_and_gradients({q, k, v}, {.mask = blind}), seen = value_and_gradients({q, k, v}, {});
  for (size_t i : {0, 1})  // out and dq
    for (int64_t row = 0; row < 6; ++row) {
      const Tensor expected = select(seen[i], 2, row);
      CHECK(max_difference(select(some[i], 2, row), row % 3 == 1 ? expected * 0.0 : expected) == 0);
    }
  check_against_reference({q, k, v}, {.causal = true, .mask = blind}, 1e-13);
  const Tensor nothing = expand(tensor({-inf}), {7});
  for (const Tensor& t : value_and_gradients({q, k, v}, {.mask = nothing})) CHECK(sum(abs(t)).item() == 0);
  const auto r =
      gradcheck([&](const List& x) { return reference::scaled_dot_product_attention(q, k, v, {.mask = x[0] + blind}); },
                {randn({6, 7}, 16)});
  INFO(r.message());
  CHECK(r.ok);
}

// Scores near 1300 that differ by little and are exact in f32. Only the rounding of weights is left, which depends on a
// score's distance from the largest score and not on the score.
TEST_CASE("large scores cost the gradients of attention no digits") {
  const int64_t queries = 40, keys = 70, size = 16;
  const auto near_nine = [](int64_t rows, unsigned seed, bool balanced) {
    std::vector<double> x = randn({rows, 16}, seed).to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double step = std::clamp(std::round(x[balanced ? i / 2 * 2 : i] * 4) / 4, -1.0, 1.0);
      x[i] = 9 + (balanced && i % 2 ? -step : step);  // balanced: a row's sum is 9 * 16, whatever the steps
    }
    return from_vector(x, {1, 1, rows, 16});
  };
  const List exact{near_nine(queries, 30, false), near_nine(keys, 31, true), randn({1, 1, keys, size}, 32)};
  List in;
  for (const Tensor& x : exact) in.push_back(x.to(DType::f32));
  const List wide{exact[0], exact[1], in[2].to(DType::f64)};
  const AttentionOptions o{.scale = 1};
  List expected, got;
  for (auto* side : {&expected, &got}) {
    List leaves;
    for (const Tensor& x : side == &got ? in : wide) leaves.push_back(require_grad(detach(x)));
    const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], o);
    *side = grad(List{y}, leaves, List{randn(y.shape(), 33).to(DType::f32).to(y.dtype())});
  }
  // Eight roundings of numbers near 10; dq and dk sum up to 70 of them, each times 9. A weight computed from a single
  // number would be off by as much as 1300 roundings.
  for (size_t i = 0; i < 3; ++i) {
    INFO("gradient " << i);
    CHECK(max_difference(got[i], expected[i]) <= 8 * 10 * 0x1p-24 * (i == 2 ? 1 : 9 * std::sqrt(70.0)));
  }
}

TEST_CASE("the memory of attention does not grow with the square of the length") {
  const Tensor q = randn({1, 1, 4096, 4}, 21, 0, 1, DType::f32);
  host_allocator().reset_peak();
  const int64_t used = host_allocator().stats().current;
  value_and_gradients({q, q, q}, {});
  CHECK(host_allocator().stats().peak - used < 4096 * 4096);  // a quarter of one matrix of scores
}

TEST_CASE("attention hides keys whose u8 mask is 0: the result is attention over the other keys") {
  Generator g{7, 0};
  const TensorOptions f64{DType::f64};
  const Tensor q = randn({2, 2, 3, 4}, f64, g), k = randn({2, 2, 5, 4}, f64, g), v = randn({2, 2, 5, 4}, f64, g);
  const Tensor seen = reshape(arange(5) < unsqueeze(tensor({2, 5}), 1), {2, 1, 1, 5});
  const Tensor out = scaled_dot_product_attention(q, k, v, {.mask = seen});
  for (int64_t b : {0, 1}) {
    const int64_t keys = b == 0 ? 2 : 5;
    const Tensor alone = scaled_dot_product_attention(narrow(q, 0, b, 1), narrow(narrow(k, 0, b, 1), 2, 0, keys),
                                                      narrow(narrow(v, 0, b, 1), 2, 0, keys));
    CHECK(allclose(narrow(out, 0, b, 1), alone, 0, 1e-14));
  }
  const Tensor packed = randn({2, 5, 24}, f64, g);
  const Tensor hidden = where(seen, 0, full({}, -HUGE_VAL, f64));
  for (int64_t kv_heads : {0, 2})
    CHECK(equal(packed_attention(packed, kv_heads ? 4 : 2, {.mask = seen}, kv_heads),
                packed_attention(packed, kv_heads ? 4 : 2, {.mask = hidden}, kv_heads)));
  CHECK(equal(reference::scaled_dot_product_attention(q, k, v, {.mask = seen}),
              reference::scaled_dot_product_attention(q, k, v, {.mask = hidden})));
}
