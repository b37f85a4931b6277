// A small language model of the library's layers, and the same model by hand, whose steps a mistake replaces.
#pragma once

#include "isonorm.h"

namespace isonorm::unseen {

using equivalence::Comparison, equivalence::compare_gradients, training::Examples;

inline constexpr int64_t kVocabulary = 11, kTime = 6, kWidth = 12, kHeads = 3, kBatch = 4;
inline constexpr TensorOptions kF64{DType::f64};

struct Block : nn::Module {
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(kWidth));
  nn::Linear& qkv = add("qkv", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear& proj = add("proj", nn::Linear(kWidth, kWidth));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(kWidth));
  nn::Linear& fc1 = add("fc1", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear& fc2 = add("fc2", nn::Linear(2 * kWidth, kWidth));
};

// Pre-LN with learned positions, of the library's layers. ids [batch, time] -> logits [batch, time, vocabulary].
struct Writer : nn::Module {
  nn::Embedding& tokens;
  nn::Embedding& positions = add("positions", nn::Embedding(kTime + 2, kWidth));
  nn::ModuleList<Block>& blocks = add("blocks", nn::ModuleList<Block>());
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kWidth));
  nn::Linear& head = add("head", nn::Linear(kWidth, kVocabulary));

  explicit Writer(nn::EmbeddingOptions options = {})
      : tokens(add("tokens", nn::Embedding(kVocabulary, kWidth, options))) {
    blocks.append(Block());
    blocks.append(Block());
    to(DType::f64);
  }
  Tensor forward(const Tensor& ids) override {
    Tensor x = tokens(ids) + positions.first(ids.size(1));
    for (Block* b : blocks) {
      x = x + b->proj(packed_attention(b->qkv(b->norm1(x)), kHeads, {.causal = true}));
      x = x + b->fc2(gelu(b->fc1(b->norm2(x))));
    }
    return head(norm(x));
  }
};

inline Tensor split_heads(const Tensor& x) {
  return permute(reshape(x, {x.size(0), x.size(1), kHeads, kWidth / kHeads}), {0, 2, 1, 3});
}
inline Tensor centred(const Tensor& x, int axis = -1) { return x - mean(x, {axis}, true); }
inline Tensor divided(const Tensor& c, const Tensor& variance, nn::LayerNorm& layer, double eps = 1e-5) {
  return c / sqrt(variance + eps) * layer.weight + layer.bias;
}

// The same model by hand. A mistake replaces a step.
struct OwnWriter : Writer {
  using Writer::Writer;
  using Step = std::function<Tensor(const Tensor&)>;
  using OfBlock = std::function<Tensor(const Tensor&, Block&)>;

  Step embed = [this](const Tensor& ids) {
    return embedding(tokens.weight, ids) + embedding(positions.weight, arange(ids.size(1)));
  };
  std::function<Tensor(const Tensor&, nn::LayerNorm&)> normalize = [](const Tensor& x, nn::LayerNorm& layer) {
    const Tensor c = centred(x);
    return divided(c, mean(square(c), {-1}, true), layer);
  };
  // Three tensors [batch, heads, time, size].
  std::function<std::vector<Tensor>(const Tensor&)> queries_keys_values = [](const Tensor& packed) {
    std::vector<Tensor> parts = chunk(packed, 3, -1);
    for (Tensor& p : parts) p = split_heads(p);
    return parts;
  };
  std::function<Tensor(const Tensor&, const Tensor&)> scores = [](const Tensor& q, const Tensor& k) {
    return matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(kWidth / kHeads));
  };
  std::function<Tensor(int64_t)> hidden = [](int64_t time) { return triu(ones({time, time}, {DType::u8}), 1); };
  Step probabilities = [this](const Tensor& s) {
    return softmax(masked_fill(s, hidden(s.size(-1)), -std::numeric_limits<double>::infinity()), -1);
  };
  Step mixed = [this](const Tensor& packed) {  // [batch, heads, time, size]
    const std::vector<Tensor> p = queries_keys_values(packed);
    return matmul(probabilities(scores(p[0], p[1])), p[2]);
  };
  OfBlock attend = [this](const Tensor& x, Block& b) {
    return b.proj(reshape(permute(mixed(b.qkv(x)), {0, 2, 1, 3}), x.shape()));
  };
  Step activate = [](const Tensor& x) { return x * (erf(x / std::sqrt(2.0)) + 1) / 2; };
  OfBlock feed_forward = [this](const Tensor& x, Block& b) { return b.fc2(activate(b.fc1(x))); };
  OfBlock run = [this](const Tensor& x, Block& b) {
    const Tensor after = x + attend(normalize(x, b.norm1), b);
    return after + feed_forward(normalize(after, b.norm2), b);
  };
  Step logits = [this](const Tensor& x) { return head(normalize(x, norm)); };

  Tensor forward(const Tensor& ids) override {
    Tensor x = embed(ids);
    for (Block* b : blocks) x = run(x, *b);
    return logits(x);
  }
};

// Ids and the ids after them.
inline Examples sentences(int64_t step) {
  Generator data{5, static_cast<uint64_t>(step)};
  const Tensor ids = randint(0, kVocabulary, {kBatch, kTime + 1}, kCpu, data);
  return {narrow(ids, 1, 0, kTime), contiguous(narrow(ids, 1, 1, kTime))};
}

}  // namespace isonorm::unseen
