// Norms of the queries and keys of each head, and biases only for queries, keys and values. tests/tools/port_test.cpp
// compares the program's outputs with transformers' Qwen2 and Qwen3.
#include "core/view.h"
#include "nn/attention.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t kHeads = 4, kShared = 2, kSize = 6, kWidth = 10, kTurning = kHeads + kShared;

MultiheadAttention attention(NormKind kind, uint64_t seed) {
  MultiheadAttention made(kWidth, {.heads = kHeads,
                                   .head_width = kSize,
                                   .kv_heads = kShared,
                                   .causal = true,
                                   .rotary_base = 100,
                                   .qk_norm = kind,
                                   .qk_norm_options = {.eps = 1e-3}});
  draw(made, seed);
  return made;
}

// The rows of queries and keys minus the mean of their head.
Tensor centred(const Tensor& rows) {
  const Tensor turning = reshape(narrow(rows, 0, 0, kTurning * kSize), {kTurning, kSize, rows.numel() / rows.size(0)});
  return reshape(turning - mean(turning, {1}, true), {kTurning * kSize, rows.numel() / rows.size(0)});
}

}  // namespace

// LN(W x + b) = RMSNorm(P W x + P b) head by head. W's gradient is P times the gradient of P W (docs/connections.md).
TEST_CASE("if queries and keys are centred in each head, RMSNorm equals LayerNorm of the originals") {
  MultiheadAttention layer = attention(NormKind::layer, 1), rms = attention(NormKind::rms, 1);
  const TensorMap plain = layer.state_dict();
  rms.load_state_dict(plain);
  manual_seed(2);
  const Tensor x = randn({2, 5, kWidth}, kF64), upstream = randn({2, 5, kWidth}, kF64);
  const auto run = [&](MultiheadAttention& m) {
    const Tensor y = m(x);
    for (const Tensor& p : m.parameters()) set_grad(p, {});
    backward(sum(y * upstream));
    return detach(y);
  };
  const Tensor expected = run(layer);
  CHECK(relative_deviation(run(rms), expected) > 0.01);  // unchanged weights
  const auto centre = [&](const char* name) {
    const Tensor p = parameter(rms, name).tensor;
    NoGrad no_grad;
    copy_into(narrow(detach(p), 0, 0, kTurning * kSize),
              reshape(centred(detach(p)), p.rank() == 1 ? Dims{kTurning * kSize} : Dims{kTurning * kSize, kWidth}));
  };
  centre("qkv.weight");
  CHECK(relative_deviation(run(rms), expected) > 0.01);  // weights centred, biases not
  centre("qkv.bias");
  // Sums of at most 10 products, norms of 6 numbers, softmax of 5: fewer than 100 roundings.
  constexpr double kRounding = 100 * 0x1p-52;
  check_close(run(rms), expected, kRounding);
  for (const char* name : {"qkv.weight", "qkv.bias"}) {
    INFO(name);
    const Tensor a = parameter(layer, name).tensor.grad(), b = parameter(rms, name).tensor.grad();
    check_close(centred(b), reshape(narrow(a, 0, 0, kTurning * kSize), centred(b).shape()), 10 * kRounding);
    check_close(narrow(b, 0, kTurning * kSize, kShared * kSize), narrow(a, 0, kTurning * kSize, kShared * kSize),
                10 * kRounding);
  }
  for (const char* name : {"q_norm.weight", "q_norm.bias", "k_norm.weight", "k_norm.bias", "proj.weight"})
    check_close(parameter(rms, name).tensor.grad(), parameter(layer, name).tensor.grad(), 10 * kRounding);
}

TEST_CASE("biases of queries, keys and values: also without other biases; softmax ignores the keys' last bias") {
  const auto made = [](bool bias, bool qkv, NormKind kind) {
    return MultiheadAttention(8, {.heads = 2, .bias = bias, .qkv_bias = qkv, .qk_norm = kind});
  };
  using Names = std::vector<std::string>;
  CHECK(names(made(false, true, NormKind::none)) == Names{"qkv.weight", "qkv.bias", "proj.weight"});
  CHECK(names(made(false, false, NormKind::rms)) ==
        Names{"qkv.weight", "q_norm.weight", "q_norm.bias", "k_norm.weight", "k_norm.bias", "proj.weight"});
  for (const bool bias : {false, true}) {
    const NamedParameter blind = parameter(made(bias, true, NormKind::none), "qkv.bias");
    CHECK((blind.blind_begin == 8 && blind.blind_end == 16));
    const NamedParameter seen = parameter(made(bias, true, NormKind::layer), "qkv.bias");
    CHECK(seen.blind_begin == seen.blind_end);
    const NamedParameter last = parameter(made(bias, true, NormKind::layer), "k_norm.bias");
    CHECK((last.blind_begin == 0 && last.blind_end == 4));
  }
  CHECK_THROWS_WITH(made(true, true, NormKind::crms),
                    Contains("q_norm is crms_norm, expected layer_norm, rms_norm or none"));
  CrossAttention cross(8, 8, {.heads = 2, .bias = false, .qkv_bias = true, .qk_norm = NormKind::rms});
  CHECK(names(cross) == Names{"q.weight", "q.bias", "kv.weight", "kv.bias", "proj.weight"});
}
