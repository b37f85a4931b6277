// bf16 attention against plain f64 code at the same inputs, within the documented roundings: weights, gradients of
// scores and results are rounded once each, and so is the result from which the mean of a query's gradient is taken.
#include "core/kernels/matmul.h"
#include "tests/support/threads.h"
#include "tests/autograd/room.h"

using Values = std::vector<double>;

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Case {
  int64_t batch, heads, queries, keys, size, values;
  bool causal = false, from_last = false, masked = false;
};
// Lengths around tiles of 64 and 128 queries and 64 keys, odd sizes, odd diagonals, queries that see no key.
const Case kCases[] = {{1, 1, 1, 1, 1, 1},
                       {2, 3, 5, 7, 3, 5, false, false, true},
                       {1, 2, 65, 65, 32, 32, true},
                       {1, 1, 50, 171, 17, 9},
                       {1, 2, 131, 131, 64, 64, true, false, true},
                       {1, 1, 130, 237, 5, 16, true, true},
                       {1, 1, 237, 130, 8, 3, true, true},
                       {1, 1, 201, 170, 6, 70, true, true, true},
                       {1, 1, 9, 1101, 66, 8, false, false, true},
                       {1, 1, 300, 603, 4, 6, true, true}};

struct Inputs {
  Tensor q, k, v, dout, mask;
};
Inputs draw(const Case& c) {
  const auto make = [](const Dims& shape, uint64_t seed) { return test::randn(shape, seed, 0, 1, DType::bf16); };
  Inputs x{make({c.batch, c.heads, c.queries, c.size}, 1),
           make({c.batch, c.heads, c.keys, c.size}, 2),
           make({c.batch, c.heads, c.keys, c.values}, 3),
           make({c.batch, c.heads, c.queries, c.values}, 4),
           {}};
  if (!c.masked) return x;
  x.mask = make({c.queries, c.keys}, 5);
  for (int64_t i = 0; i < x.mask.numel(); ++i)
    if (i / c.keys % 7 == 3 || i % 5 == 2) x.mask.mutable_data<bf16>()[i] = -std::numeric_limits<float>::infinity();
  return x;
}

// The result and the gradients of q, k and v.
std::vector<Values> run(const Case& c, const Inputs& x) {
  const std::vector<Tensor> leaves = {require_grad(detach(x.q)), require_grad(detach(x.k)), require_grad(detach(x.v))};
  const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2],
                                                {.causal = c.causal, .mask = x.mask, .from_last = c.from_last});
  const std::vector<Tensor> out = {y}, dout = {x.dout};
  std::vector<Values> all = {y.to_vector<double>()};
  for (const Tensor& g : grad(out, leaves, dout)) all.push_back(g.to_vector<double>());
  return all;
}

// A sum, and the error that roundings may add to it.
struct Sum {
  Values value, error;
  explicit Sum(int64_t n) : value(n), error(n) {}
  void add(int64_t i, double term, double of_term) { value[i] += term, error[i] += of_term; }
};

// The results that run() should give. half: the largest relative error of rounding to bf16.
std::vector<Sum> plain(const Case& c, const Inputs& x) {
  constexpr double half = 0x1p-8, eps = 0x1p-23;
  const Values q = x.q.to_vector<double>(), k = x.k.to_vector<double>(), v = x.v.to_vector<double>(),
               g = x.dout.to_vector<double>(), mask = x.mask.defined() ? x.mask.to_vector<double>() : Values();
  const double scale = 1 / std::sqrt(static_cast<double>(c.size));
  const int64_t heads = c.batch * c.heads, d = c.size, e = c.values;
  std::vector<Sum> all = {Sum(heads * c.queries * e), Sum(heads * c.queries * d), Sum(heads * c.keys * d),
                          Sum(heads * c.keys * e)};
  Values p(c.keys), dp(c.keys), dp_terms(c.keys);
  for (int64_t i = 0; i < heads * c.queries; ++i) {
    const int64_t head = i / c.queries, r = i % c.queries, last = r + (c.from_last ? c.keys - c.queries : 0);
    double top = kHidden, total = 0, along = 0, along_terms = 0, scores = 0;
    for (int64_t j = 0; j < c.keys; ++j) {
      double dot = 0;
      for (int64_t n = 0; n < d; ++n) dot += q[i * d + n] * k[(head * c.keys + j) * d + n];
      p[j] = c.causal && j > last ? kHidden : scale * dot + (mask.empty() ? 0 : mask[r * c.keys + j]);
      top = std::max(top, p[j]);
      if (p[j] != kHidden) scores = std::max(scores, std::abs(p[j]));
    }
    if (top == kHidden) continue;
    for (double& w : p) total += w = std::exp(w - top);
    for (int64_t j = 0; j < c.keys; ++j) {
      p[j] /= total, dp[j] = dp_terms[j] = 0;
      for (int64_t n = 0; n < e; ++n) {
        const double term = g[i * e + n] * v[(head * c.keys + j) * e + n];
        dp[j] += term, dp_terms[j] += std::abs(term);
      }
      along += p[j] * dp[j];
    }
    const double exactly = 16 * eps * (1 + scores);  // error of a weight, since its score is rounded to f32
    for (int64_t j = 0; j < c.keys; ++j)
      for (int64_t n = 0; n < e; ++n) {
        const double term = p[j] * v[(head * c.keys + j) * e + n], of_v = p[j] * g[i * e + n];
        all[0].add(i * e + n, term, (half + exactly) * std::abs(term));
        all[3].add((head * c.keys + j) * e + n, of_v, (half + exactly) * std::abs(of_v));
      }
    for (int64_t n = 0; n < e; ++n)
      along_terms += std::abs(g[i * e + n]) * (half * std::abs(all[0].value[i * e + n]) + all[0].error[i * e + n]);
    for (int64_t j = 0; j < c.keys; ++j) {
      const double ds = scale * p[j] * (dp[j] - along);
      const double of_ds = scale * p[j] * (along_terms + exactly * (dp_terms[j] + std::abs(along)));
      for (int64_t n = 0; n < d; ++n) {
        const double of_q = k[(head * c.keys + j) * d + n], of_k = q[i * d + n];
        const double error = of_ds + half * (std::abs(ds) + of_ds);
        all[1].add(i * d + n, ds * of_q, error * std::abs(of_q));
        all[2].add((head * c.keys + j) * d + n, ds * of_k, error * std::abs(of_k));
      }
    }
  }
  for (Sum& s : all)  // the results are rounded, too
    for (size_t i = 0; i < s.value.size(); ++i) s.error[i] += half * (std::abs(s.value[i]) + s.error[i]) + 1e-30;
  return all;
}

}  // namespace

TEST_CASE("attention of bf16 agrees with plain code, for any number of threads") {
  for (const Case& c : kCases) {
    INFO(c.queries << " x " << c.keys << ", sizes " << c.size << ", " << c.values << " causal " << c.causal
                   << c.from_last << " masked " << c.masked);
    const Inputs x = draw(c);
    const auto with = [&](int threads) {
      const test::Threads guard(threads);
      return run(c, x);
    };
    const std::vector<Values> found = with(1);
    const std::vector<Sum> want = plain(c, x);
    for (size_t t = 0; t < found.size(); ++t) {
      double worst = 0;
      for (size_t i = 0; i < found[t].size(); ++i) {
        const double share = std::abs(found[t][i] - want[t].value[i]) / want[t].error[i];
        worst = share <= worst ? worst : share;  // keeps NaN
      }
      INFO("tensor " << t);
      CHECK(worst <= 1);
    }
    for (const int threads : {2, 3}) CHECK((with(threads) == found));
  }
}

TEST_CASE("a key that a causal mask hides from all queries of a tile has no influence in bf16") {
  const Case c{1, 1, 70, 131, 8, 8, true};
  Inputs x = draw(c);
  const std::vector<Values> before = run(c, x);
  for (int64_t i = 96 * 8; i < x.v.numel(); ++i) x.v.mutable_data<bf16>()[i] = NAN, x.k.mutable_data<bf16>()[i] = NAN;
  const std::vector<Values> after = run(c, x);
  for (const size_t t : {0, 1}) CHECK((after[t] == before[t]));
}
