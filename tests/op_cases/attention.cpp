// Rows of attention.
#include "autograd/fused/attention.h"

#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/pointwise.h"
#include "tests/op_cases/groups.h"

namespace isonorm::test {
namespace {

struct Setting {
  bool causal = false;
  double scale = 0;
  Array mask = {};  // no gradient; rank 0 and empty: none
  bool from_last = false;
};

AttentionOptions options_of(const Setting& s, const Tensor& q) {
  AttentionOptions o{.causal = s.causal, .scale = s.scale, .from_last = s.from_last};
  if (!s.mask.v.empty()) o.mask = on_test_device(s.mask.v, s.mask.shape).to(q.dtype());
  return o;
}

// Query by query: scores, softmax, weighted sum of the values; 0 if all keys are masked. `mask` may be null.
Array attend(const Array& q, const Array& k, const Array& v, const Setting& s, const Array* mask) {
  const int64_t size = q.shape[3], keys = k.shape[2], out = v.shape[3];
  const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(size));
  Array y({q.shape[0], q.shape[1], q.shape[2], out});
  for_each_index({q.shape[0], q.shape[1], q.shape[2]}, [&](const Dims& i) {
    std::vector<long double> score(keys);
    long double top = -HUGE_VALL, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      long double dot = 0;
      for (int64_t c = 0; c < size; ++c)
        dot += static_cast<long double>(q.at({i[0], i[1], i[2], c})) * k.at({i[0], i[1], j, c});
      const int64_t last = i[2] + (s.from_last ? keys - q.shape[2] : 0);
      score[j] = s.causal && j > last ? -HUGE_VALL : dot * scale + (mask ? mask->stretched({i[0], i[1], i[2], j}) : 0);
      top = std::max(top, score[j]);
    }
    if (top == -HUGE_VALL) return;
    for (long double& e : score) sum += e = std::exp(e - top);
    for (int64_t c = 0; c < out; ++c) {
      long double value = 0;
      for (int64_t j = 0; j < keys; ++j) value += score[j] * v.at({i[0], i[1], j, c});
      y.at({i[0], i[1], i[2], c}) = static_cast<double>(value / sum);
    }
  });
  return y;
}

struct Size {
  int64_t batch, heads, queries, keys, size, value;
};
constexpr Size kSizes[] = {{1, 1, 1, 1, 1, 1},   {1, 1, 1, 1, 4, 4},  {1, 1, 2, 3, 4, 4}, {2, 1, 3, 3, 2, 2},
                           {1, 2, 3, 3, 4, 4},   {2, 2, 4, 4, 3, 3},  {1, 1, 5, 2, 3, 3}, {1, 3, 2, 5, 1, 2},
                           {2, 2, 1, 6, 4, 1},   {1, 2, 7, 7, 2, 5},  {3, 1, 2, 2, 8, 8}, {1, 1, 9, 9, 4, 4},
                           {1, 2, 17, 17, 2, 2}, {1, 1, 3, 33, 4, 4}, {2, 0, 2, 2, 2, 2}, {0, 2, 2, 2, 2, 2},
                           {1, 2, 0, 3, 4, 4},   {1, 2, 3, 0, 4, 4}};

// Additive masks: shared by all heads with some keys masked (never the first), one mask per query, and a bias per head.
Array hidden_keys(Draw& draw, const Dims& shape) {
  return tabulate(shape,
                  [&](const Dims& i) { return i[shape.rank - 1] > 0 && draw.integer(3) == 0 ? -HUGE_VAL : 0.0; });
}

// Every second query sees no key.
Array hidden_queries(int64_t queries) {
  return tabulate({1, 1, queries, 1}, [](const Dims& i) { return i[2] % 2 == 0 ? -HUGE_VAL : 0.0; });
}

Arrays inputs_of(Draw& draw, const Size& s, double spread = 1) {
  return {draw.normal({s.batch, s.heads, s.queries, s.size}, 0, spread),
          draw.normal({s.batch, s.heads, s.keys, s.size}, 0, spread), draw.normal({s.batch, s.heads, s.keys, s.value})};
}

OpCase attention_row() {
  OpCase op = row_of("Fused", "scaled_dot_product_attention", "(q, k, v, const AttentionOptions& options = {})",
                     "softmax(scale q k^T + mask) v, causal or not; 0 for a query that sees no key",
                     {16, Scale::terms, true, true});
  op.checks = 100;
  const auto add = [&](const std::string& label, const Arrays& x, const Setting& setting) -> Sample& {
    Sample& s = op.add(
        label, x,
        [=](const Tensors& t) {
          AttentionOptions o = options_of(setting, t[0]);
          if (t.size() > 3) o.mask = t[3];
          return scaled_dot_product_attention(t[0], t[1], t[2], o);
        },
        [=](const Arrays& a) {
          return attend(a[0], a[1], a[2], setting,
                        a.size() > 3             ? &a[3]
                        : setting.mask.v.empty() ? nullptr
                                                 : &setting.mask);
        });
    s.length = static_cast<double>(std::max(x[0].shape[3], x[1].shape[2]));
    s.slope = 10;                     // p (dp - sum of p dp) k: products of numbers up to 3
    s.recorded_bits = x.size() == 3;  // a mask with a gradient runs the composition
    return s;
  };
  const auto add_setting = [&](const Size& s, const std::string& label, const Setting& setting) {
    if (s.batch * s.heads == 0 && !setting.mask.v.empty()) return;
    add(label, inputs_of(op.draw, s), setting).composed = s.heads > 0;
  };
  for (const Size& s : kSizes)
    for (bool causal : {false, true}) {
      const std::string label = causal ? "causal" : "full";
      add_setting(s, label, {.causal = causal});
      add_setting(s, label + " scale 0.3", {.causal = causal, .scale = 0.3});
      add_setting(s, label + " mask", {.causal = causal, .mask = hidden_keys(op.draw, {1, 1, s.queries, s.keys})});
      add_setting(s, label + " key mask", {.causal = causal, .mask = hidden_keys(op.draw, {s.batch, 1, 1, s.keys})});
      add_setting(s, label + " hidden queries", {.causal = causal, .mask = hidden_queries(s.queries)});
    }
  for (const Size& s : kSizes) add_setting(s, "from last", {.causal = true, .from_last = true});
  for (const Size& s : {Size{2, 2, 3, 4, 2, 2}, Size{1, 1, 5, 5, 3, 3}}) {
    Arrays x = inputs_of(op.draw, s);
    x.push_back(op.draw.normal({s.heads, s.queries, s.keys}));
    add("mask with gradient", x, {});
    Sample& steep = add("deviation 5", inputs_of(op.draw, s, 5), {});
    steep.slope = 50, steep.composed = false;
  }
  add("full", inputs_of(op.draw, {2, 4, 150, 150, 16, 16}), {}).large = true;
  add("causal", inputs_of(op.draw, {2, 4, 150, 150, 16, 16}), {.causal = true}).large = true;
  add("causal", inputs_of(op.draw, {1, 1, 300, 300, 24, 24}), {.causal = true}).large = true;  // computed in parts
  const auto refuse = [&](std::vector<std::string> words, const Dims& q, const Dims& k, const Dims& v,
                          DType dtype = DType::f32, const Tensor& mask = {}) {
    op.refuse(std::move(words),
              [=] { scaled_dot_product_attention(reals(q), reals(k), reals(v, dtype), {.mask = mask}); });
  };
  const Dims fits{1, 1, 2, 3};
  refuse({"[2, 3]", "expected [batch, heads, time, size]"}, {2, 3}, {2, 3}, {2, 3});
  refuse({"q [1, 1, 2, 3], k [1, 1, 2, 4]"}, fits, {1, 1, 2, 4}, fits);
  refuse({"[1, 1, 2, 3]", "v [1, 1, 5, 3] do not fit"}, fits, fits, {1, 1, 5, 3});
  refuse({"dtypes of q, k, v differ: f32, f32, f64"}, fits, fits, fits, DType::f64);
  refuse({"[3]", "[1, 1, 2, 2]"}, fits, fits, fits, DType::f32, reals({3}));
  refuse({"f64", "f32"}, fits, fits, fits, DType::f32, reals({2, 2}, DType::f64));
  return op;
}

// The heads of a packed projection from column `first` heads on; each serves `share` consecutive query heads.
Array heads_of(const Array& qkv, int64_t heads, int64_t size, int64_t first, int64_t share) {
  return moved(qkv, {qkv.shape[0], heads, qkv.shape[1], size}, [=](const Dims& i) {
    return Dims{i[0], i[2], (first + i[1] / share) * size + i[3]};
  });
}

OpCase packed_row() {
  OpCase op = row_of(
      "Fused", "packed_attention", "(qkv, int64_t heads, const AttentionOptions& options = {}, int64_t kv_heads = 0)",
      "attention on [batch, time, 3 heads size] to [batch, time, heads size]", {16, Scale::terms, true, true});
  op.checks = 100;
  // `kv` key/value heads; 0: as many as query heads.
  const auto add = [&](int64_t batch, int64_t time, int64_t heads, int64_t size, const std::string& label,
                       const Setting& setting, int64_t kv = 0) -> Sample& {
    const int64_t own = kv ? kv : heads, share = heads / own;
    Sample& s = op.add(
        text(heads, " heads ", label), {op.draw.normal({batch, time, (heads + 2 * own) * size})},
        [=](const Tensor& t) { return packed_attention(t, heads, options_of(setting, t), kv); },
        [=](const Array& a) {
          const Array y = attend(heads_of(a, heads, size, 0, 1), heads_of(a, heads, size, heads, share),
                                 heads_of(a, heads, size, heads + own, share), setting,
                                 setting.mask.v.empty() ? nullptr : &setting.mask);
          return moved(y, {batch, time, heads * size}, [=](const Dims& i) {
            return Dims{i[0], i[2] / size, i[1], i[2] % size};
          });
        });
    s.length = static_cast<double>(std::max(size, time));
    s.slope = 10;
    return s;
  };
  for (int64_t batch : {1, 2})
    for (int64_t time : {1, 2, 5})
      for (int64_t heads : {1, 2, 3})
        for (int64_t size : {1, 4}) {
          add(batch, time, heads, size, "full", {});
          add(batch, time, heads, size, "causal", {.causal = true});
          add(batch, time, heads, size, "mask", {.mask = hidden_keys(op.draw, {time, time})});
        }
  for (int64_t time : {3, 9, 17}) {
    add(2, time, 2, 4, "scale 0.3", {.scale = 0.3});
    add(2, time, 2, 4, "key mask", {.mask = hidden_keys(op.draw, {2, 1, 1, time})});
    add(2, time, 2, 4, "hidden queries", {.mask = hidden_queries(time)});
    add(2, time, 2, 4, "causal hidden queries", {.causal = true, .mask = hidden_queries(time)});
    add(2, time, 2, 4, "from last", {.causal = true, .from_last = true});
  }
  for (const auto& [heads, kv] : {std::pair<int64_t, int64_t>{2, 1}, {6, 2}, {4, 2}, {3, 3}}) {
    add(2, 5, heads, 3, text(kv, " of keys"), {}, kv);
    add(2, 5, heads, 3, text(kv, " of keys causal"), {.causal = true}, kv);
  }
  add(0, 2, 2, 2, "full", {});
  add(3, 150, 4, 16, "full", {}).large = true;
  add(3, 150, 4, 16, "causal", {.causal = true}).large = true;
  op.refuse({"[2, 3]"}, [] { packed_attention(reals({2, 3}), 1); });
  op.refuse({"[1, 2, 6] does not divide into [batch, time, 3 x 4 heads x size]"}, [] {
    packed_attention(reals({1, 2, 6}), 4);
  });
  op.refuse({"0"}, [] { packed_attention(reals({1, 2, 6}), 0); });
  op.refuse({"[1, 2, 21]", "2 heads"}, [] { packed_attention(reals({1, 2, 21}), 3, {}, 2); });
  op.refuse({"[1, 2, 9]"}, [] { packed_attention(reals({1, 2, 9}), 2, {}, 1); });
  op.refuse({"i64"}, [] { packed_attention(integers({1, 2, 6}), 1); });
  op.refuse({"[2, 1, 2, 2]", "[1, 1, 2, 2]"}, [] {
    packed_attention(reals({1, 2, 6}), 1, {.mask = reals({2, 1, 2, 2})});
  });
  op.refuse({"[3]", "[1, 1, 2, 2]"}, [] { packed_attention(reals({1, 2, 6}), 1, {.mask = require_grad(reals({3}))}); });
  return op;
}

}  // namespace

std::vector<OpCase> attention_cases() { return {attention_row(), packed_row()}; }

}  // namespace isonorm::test
