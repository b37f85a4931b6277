// A small GPT: fused ops against compositions, with gelu and with relu, under several optimizers.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

const Shapes kGpt = {{"token", {11, 12}}, {"position", {6, 12}}, {"g1", {12}},       {"t1", {12}},
                     {"qkv", {36, 12}},   {"qkv_bias", {36}},    {"proj", {12, 12}}, {"proj_bias", {12}},
                     {"g2", {12}},        {"t2", {12}},          {"w1", {24, 12}},   {"b1", {24}},
                     {"w2", {12, 24}},    {"b2", {12}},          {"gf", {12}},       {"tf", {12}}};

Tensor composed_causal_attention(const Tensor& packed) {
  const int64_t batch = packed.size(0), time = packed.size(1);
  const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {batch, time, 2, 6}), 1, 2); };
  const std::vector<Tensor> qkv = chunk(packed, 3, -1);
  const Tensor scores = matmul(heads(qkv[0]), transpose(heads(qkv[1]), -1, -2)) / std::sqrt(6.0);
  const Tensor masked = masked_fill(scores, triu(ones({time, time}, {DType::u8}), 1), -INFINITY);
  return reshape(transpose(matmul(softmax(masked, -1), heads(qkv[2])), 1, 2), {batch, time, 12});
}

Make gpt(bool composed, Tensor (*activation)(const Tensor&)) {
  return net(kGpt, [=](Net& m, const Tensor& ids) {
    const auto normed = [&](const Tensor& x, const char* gain, const char* bias) {
      return composed ? composed_layer_norm(x, m[gain], m[bias]) : layer_norm(x, m[gain], m[bias]);
    };
    Tensor x = embedding(m["token"], ids) + m["position"];
    const Tensor packed = linear(normed(x, "g1", "t1"), m["qkv"], m["qkv_bias"]);
    const Tensor heads = composed ? composed_causal_attention(packed) : packed_attention(packed, 2, {.causal = true});
    x = x + linear(heads, m["proj"], m["proj_bias"]);
    x = x + linear(activation(linear(normed(x, "g2", "t2"), m["w1"], m["b1"])), m["w2"], m["b2"]);
    return linear(normed(x, "gf", "tf"), m["token"]);
  });
}

}  // namespace

RightPairs transformer_pairs() {
  const RightPair smooth = {"GPT with gelu", gpt(false, gelu), gpt(true, gelu), token_ids(11, {4, 6})};
  const RightPair kinked = {"GPT with relu", gpt(false, relu), gpt(true, relu), token_ids(11, {4, 6})};
  return {
      smooth,
      kinked,
      trained(smooth, "AdamW at 1e-3", adamw(1e-3)),
      trained(smooth, "AdamW at 1e-2", adamw(1e-2)),
      trained(smooth, "AdamW at 1e-1", adamw(1e-1)),
      trained(smooth, "SGD with momentum", sgd(0.1, 0.9)),
      trained(kinked, "AdamW at 1e-2", adamw(1e-2)),
  };
}

}  // namespace isonorm::right_pairs
