// Attention: fused and composed, with masks in three ways.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

enum class Mask { fill, large_number, product };

// Causal attention of two heads of four, composed. q, k, v [batch, time, 8].
Tensor composed_attention(const Tensor& q, const Tensor& k, const Tensor& v, Mask mask) {
  const int64_t time = q.size(1);
  const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {x.size(0), time, 2, 4}), 1, 2); };
  const Tensor scores = matmul(heads(q), transpose(heads(k), -1, -2)) * 0.5;
  const Tensor future = triu(ones({time, time}, {q.dtype()}), 1);
  Tensor shares;
  if (mask == Mask::fill) shares = softmax(masked_fill(scores, ne(future, 0.0), -INFINITY), -1);
  if (mask == Mask::large_number) shares = softmax(scores + future * -1e9, -1);
  if (mask == Mask::product) {
    const Tensor weights = exp(scores - amax(scores, {-1}, true)) * tril(ones({time, time}, {q.dtype()}));
    shares = weights / sum(weights, {-1}, true);
  }
  return reshape(transpose(matmul(shares, heads(v)), 1, 2), q.shape());
}

const Shapes kFused = {{"qkv", {24, 8}}, {"out", {8, 8}}, {"head", {4, 8}}};

Make attention_net(const std::function<Tensor(Net&, const Tensor&)>& attend, const Shapes& shapes = kFused) {
  return net(shapes,
             [=](Net& m, const Tensor& x) { return linear(mean(linear(attend(m, x), m["out"]), {1}), m["head"]); });
}

Tensor packed(Net& m, const Tensor& x) { return packed_attention(linear(x, m["qkv"]), 2, {.causal = true}); }
std::function<Tensor(Net&, const Tensor&)> sliced(Mask mask) {
  return [=](Net& m, const Tensor& x) {
    const std::vector<Tensor> w = chunk(m["qkv"], 3, 0);
    return composed_attention(linear(x, w[0]), linear(x, w[1]), linear(x, w[2]), mask);
  };
}

// Three projections instead of a joined one.
Tensor separate(Net& m, const Tensor& x) {
  return composed_attention(linear(x, m["q"]), linear(x, m["k"]), linear(x, m["v"]), Mask::fill);
}

}  // namespace

RightPairs attention_pairs() {
  const Shapes split = {{"q", {8, 8}}, {"k", {8, 8}}, {"v", {8, 8}}, {"out", {8, 8}}, {"head", {4, 8}}};
  const Make fused = attention_net(packed), three = attention_net(separate, split);
  const RightPair to_three = {.name = "attention, one projection and three",
                              .first = fused,
                              .second = three,
                              .data = rows({3, 5, 8}, 4),
                              .map = ParameterMap().split("qkv", {"q", "k", "v"})};
  const RightPair to_one = {.name = "attention, three projections and one",
                            .first = three,
                            .second = fused,
                            .data = rows({3, 5, 8}, 4),
                            .map = ParameterMap().concat({"q", "k", "v"}, "qkv")};
  const auto pair = [](const char* name, Mask mask) -> RightPair {
    return {text("causal attention, fused and composed, ", name), attention_net(packed), attention_net(sliced(mask)),
            rows({3, 5, 8}, 4)};
  };
  return {
      pair("-inf as mask", Mask::fill),
      pair("-1e9 as mask", Mask::large_number),
      pair("a product as mask", Mask::product),
      to_three,
      to_one,
      trained(to_three, "AdamW", adamw(1e-2)),
      trained(to_one, "SGD with momentum", sgd(0.1, 0.9)),
      trained(pair("-1e9 as mask", Mask::large_number), "AdamW", adamw(1e-2)),
  };
}

}  // namespace isonorm::right_pairs
