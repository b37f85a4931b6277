// Layers compared with PyTorch's: outputs, and gradients of inputs and parameters (tests/fixtures/torch_modules.py).
#include "io/safetensors.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/module_scope.h"
#include "nn/norm.h"
#include "nn/residual/post_norm.h"
#include "nn/transformer.h"
#include "tests/nn/models.h"
#include "tests/support/tolerance.h"

using namespace isonorm;

namespace {

constexpr int64_t kWidth = 6, kEncoded = 5, kHidden = 7, kHeads = 2;

// Number of consecutive steps in a layer: sums of products, normalized rows, activations. The longest sum has 12 terms
// (proj of 4 heads of 3 entries, or 2 of 6). The gradient passes as many steps.
constexpr int kMap = 1, kNorm = 1;
constexpr int kMlp = 3;        // fc1, activation, fc2
constexpr int kAttention = 5;  // qkv, scores, softmax, weighted sums of values, proj
constexpr int kBlock = kNorm + kAttention + kNorm + kMlp;
constexpr int kDecoderBlock = kBlock + kNorm + kAttention;

double tolerance_of(int steps) { return 2 * steps * test::tolerance::composite.constant * std::sqrt(12.0) * 0x1p-52; }

// Loads the case's weights into `layer` and runs forward(inputs).
template <class Forward> void check_case(const std::string& name, nn::Module& layer, int steps, Forward&& forward) {
  INFO(name);
  const TensorMap all = nn::below(load_safetensors("tests/fixtures/modules.safetensors"), name + "/"),
                  gradients = nn::below(all, "gradient/");
  const double tolerance = tolerance_of(steps);
  layer.to(DType::f64);
  layer.load_state_dict(nn::below(all, "weight/"));

  TensorMap leaves;
  for (const auto& [key, tensor] : all)
    if (gradients.find(key)) leaves.add(key, require_grad(tensor));
  const Tensor output = forward(all);
  check_close(output, all.at("output"), tolerance);
  backward(output, all.at("cotangent"));
  for (const nn::NamedParameter& p : layer.named_parameters()) leaves.add(p.name, p.tensor);
  CHECK(leaves.size() == gradients.size());
  for (const auto& [key, leaf] : leaves) {
    INFO(key);
    check_close(leaf.grad(), gradients.at(key), tolerance);
  }
}

// For a layer whose only input is `x`.
template <class Layer> void check_layer(const std::string& name, Layer layer, int steps) {
  check_case(name, layer, steps, [&](const TensorMap& in) { return layer(in.at("x")); });
}

nn::TransformerOptions transformer(const nn::Arrangement& connection, nn::Activation activation) {
  nn::TransformerOptions t{.width = kWidth, .depth = 2, .heads = kHeads, .mlp_width = kHidden, .affine = true};
  t.activation = activation, t.connection = connection;
  return t.complete();
}

// nn.TransformerEncoder: blocks and the final norm.
struct Encoder : nn::Module {
  nn::TransformerStack& layers;
  nn::Connection& norm;
  explicit Encoder(const nn::TransformerOptions& o)
      : layers(add("layers", nn::TransformerStack(o))), norm(add("norm", o.connection.last(o.width, o.last_norm()))) {}
  Tensor operator()(const Tensor& x, const Tensor& mask) {
    const nn::ModuleScope scope(*this);
    nn::Residual stream{x};
    layers(stream, {.mask = mask});
    return norm.rows(stream);
  }
};

}  // namespace

TEST_CASE("maps, tables, norms and MLPs have PyTorch's outputs and gradients") {
  check_layer("linear", nn::Linear(kWidth, 3), kMap);
  check_layer("linear_no_bias", nn::Linear(kWidth, 3, {.bias = false}), kMap);

  nn::Embedding table(6, kWidth), positions(6, kWidth);
  check_case("embedding", table, kMap, [&](const TensorMap& in) { return table(in.at("ids")); });
  check_case("embedding_first", positions, kMap,
             [&](const TensorMap& in) { return positions.first(in.at("ids").size(0)); });

  check_layer("layer_norm_no_bias", nn::LayerNorm(kWidth, {.bias = false}), kNorm);
  for (const auto& [name, options] :
       {std::pair{"", nn::NormLayerOptions{}}, {"_bare", {.affine = false}}, {"_eps", {.eps = 0.1}}}) {
    check_layer(text("layer_norm", name), nn::LayerNorm(kWidth, options), kNorm);
    check_layer(text("rms_norm", name), nn::RMSNorm(kWidth, options), kNorm);
  }

  using enum nn::Activation;
  for (const nn::Activation activation : {gelu, gelu_tanh, relu, silu, swiglu})
    for (const bool bias : {true, false})
      if (bias || activation == gelu || activation == swiglu)
        check_layer(text("mlp_", nn::name_of(activation), bias ? "" : "_no_bias"),
                    nn::FeedForward(kWidth, {.hidden = kHidden, .activation = activation, .bias = bias}), kMlp);
}

TEST_CASE("attention to the same and to other rows has PyTorch's outputs and gradients") {
  using Options = nn::MultiheadAttentionOptions;
  const Options plain{.heads = kHeads, .head_width = kWidth / kHeads},
      grouped{.heads = 4, .head_width = 3, .kv_heads = 2},
      rotary{.heads = 2, .head_width = 6, .causal = true, .rotary_base = 100};
  Options causal = plain, bare = plain, grouped_causal = grouped, halves = rotary;
  causal.causal = grouped_causal.causal = halves.rotary_halves = true, bare.bias = false;
  const auto mask_of = [](const TensorMap& in) { return in.find("mask") ? in.at("mask") : Tensor(); };
  for (const auto& [name, options] : {std::pair{"attention", plain},
                                      {"attention_mask", plain},
                                      {"attention_learned_mask", plain},
                                      {"attention_causal", causal},
                                      {"attention_no_bias", bare},
                                      {"grouped", grouped},
                                      {"grouped_mask", grouped},
                                      {"grouped_causal", grouped_causal},
                                      {"rotary", rotary},
                                      {"rotary_halves", halves}}) {
    nn::MultiheadAttention layer(kWidth, options);
    check_case(name, layer, kAttention, [&](const TensorMap& in) { return layer(in.at("x"), mask_of(in)); });
  }
  for (const auto& [name, options] : {std::pair{"cross", plain}, {"cross_mask", plain}, {"grouped_cross", grouped}}) {
    nn::CrossAttention layer(kWidth, kEncoded, options);
    check_case(name, layer, kAttention,
               [&](const TensorMap& in) { return layer(in.at("x"), in.at("encoded"), mask_of(in)); });
  }
}

TEST_CASE("an encoder's blocks have PyTorch's outputs and gradients") {
  for (const nn::Arrangement& connection : {nn::kPreLn, nn::kPostLn})
    for (const nn::Activation activation : {nn::Activation::gelu, nn::Activation::relu}) {
      nn::TransformerBlock block(transformer(connection, activation));
      check_case(text("encoder_", connection.name, "_", nn::name_of(activation)), block, kBlock,
                 [&](const TensorMap& in) { return block(in.at("x")); });
    }
}

TEST_CASE("a decoder's blocks have PyTorch's outputs and gradients") {
  for (const nn::Arrangement& connection : {nn::kPreLn, nn::kPostLn}) {
    nn::TransformerOptions options = transformer(connection, nn::Activation::gelu);
    options.causal = true;
    nn::TransformerBlock block(options, {.stack = nn::Stack::decoder});
    check_case(text("decoder_", connection.name), block, kDecoderBlock, [&](const TensorMap& in) {
      nn::Residual stream{in.at("x")};
      block(stream, {.encoded = in.at("encoded"), .encoded_mask = in.at("mask")});
      return stream.settle();
    });
  }
}

TEST_CASE("a stack of blocks followed by a norm has PyTorch's outputs and gradients") {
  Encoder encoder(transformer(nn::kPreLn, nn::Activation::gelu));
  check_case("encoder", encoder, 2 * kBlock + kNorm,
             [&](const TensorMap& in) { return encoder(in.at("x"), in.at("mask")); });
}
