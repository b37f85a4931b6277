// A small language model with the library's layers, and the same model in hand-written ops. Tests override single
// steps.
#pragma once

#include "isonorm.h"

namespace isonorm::unseen {

using equivalence::Comparison, equivalence::compare_gradients, training::Examples;

inline constexpr int64_t kVocabulary = 11, kTime = 6, kWidth = 12, kHeads = 3, kBatch = 4;

struct Block : nn::Module {
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(kWidth));
  nn::Linear& qkv = add("qkv", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear& proj = add("proj", nn::Linear(kWidth, kWidth));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(kWidth));
  nn::Linear& fc1 = add("fc1", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear& fc2 = add("fc2", nn::Linear(2 * kWidth, kWidth));
};

// Pre-LN with learned positions. ids [batch, time] -> logits [batch, time, vocabulary].
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

// The same model by hand. A test overrides the step with the mistake.
struct OwnWriter : Writer {
  using Writer::Writer;

  virtual Tensor embed(const Tensor& ids) {
    return embedding(tokens.weight, ids) + embedding(positions.weight, arange(ids.size(1)));
  }
  virtual Tensor normalize(const Tensor& x, nn::LayerNorm& layer) {
    const Tensor centred = x - mean(x, {-1}, true);
    const Tensor variance = mean(square(centred), {-1}, true);
    return centred / sqrt(variance + 1e-5) * layer.weight + layer.bias;
  }
  static Tensor split_heads(const Tensor& x) {
    return permute(reshape(x, {x.size(0), x.size(1), kHeads, kWidth / kHeads}), {0, 2, 1, 3});
  }
  // Three tensors [batch, heads, time, size].
  virtual std::vector<Tensor> queries_keys_values(const Tensor& packed) {
    std::vector<Tensor> parts = chunk(packed, 3, -1);
    for (Tensor& p : parts) p = split_heads(p);
    return parts;
  }
  virtual Tensor scores(const Tensor& q, const Tensor& k) {
    return matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(kWidth / kHeads));
  }
  virtual Tensor hidden(int64_t time) { return triu(ones({time, time}, {DType::u8}), 1); }
  virtual Tensor probabilities(const Tensor& scores) {
    return softmax(masked_fill(scores, hidden(scores.size(-1)), -std::numeric_limits<double>::infinity()), -1);
  }
  Tensor attend(const Tensor& x, Block& b) {
    const std::vector<Tensor> p = queries_keys_values(b.qkv(x));
    const Tensor mixed = permute(matmul(probabilities(scores(p[0], p[1])), p[2]), {0, 2, 1, 3});
    return b.proj(reshape(mixed, x.shape()));
  }
  virtual Tensor activate(const Tensor& x) { return x * (erf(x / std::sqrt(2.0)) + 1) / 2; }
  virtual Tensor feed_forward(const Tensor& x, Block& b) { return b.fc2(activate(b.fc1(x))); }
  virtual Tensor run(Block& b, const Tensor& x) {
    const Tensor after = x + attend(normalize(x, b.norm1), b);
    return after + feed_forward(normalize(after, b.norm2), b);
  }
  virtual Tensor logits(const Tensor& x) { return head(normalize(x, norm)); }
  Tensor forward(const Tensor& ids) override {
    Tensor x = embed(ids);
    for (Block* b : blocks) x = run(*b, x);
    return logits(x);
  }
};

// Ids and the ids after them.
inline Examples sentences(int64_t step) {
  Generator data{5, static_cast<uint64_t>(step)};
  const Tensor ids = randint(0, kVocabulary, {kBatch, kTime + 1}, kCpu, data);
  return {narrow(ids, 1, 0, kTime), contiguous(narrow(ids, 1, 1, kTime))};
}

template <class B, class A = Writer> Comparison compare_writers() {
  manual_seed(2);
  A a;
  B b;
  return compare_gradients(a, b, {}, training::cross_entropy_of, sentences);
}

}  // namespace isonorm::unseen
