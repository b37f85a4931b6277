// Mistakes in attention: scores, masks, heads, rotary positions.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_writer.h"

namespace isonorm::unseen {

namespace {

// Divides by the root of the width instead of the root of the head width.
struct ScaledByWidth : OwnWriter {
  Tensor scores(const Tensor& q, const Tensor& k) override {
    return matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(kWidth));
  }
};

struct SecondBlockScaled : OwnWriter {
  bool second = false;
  Tensor run(Block& b, const Tensor& x) override {
    second = &b == &blocks[1];
    return OwnWriter::run(b, x);
  }
  Tensor scores(const Tensor& q, const Tensor& k) override { return OwnWriter::scores(q, k) * (second ? 0.5 : 1.0); }
};

// The mask begins one position later, so each token sees the next one.
struct SeesNext : OwnWriter {
  Tensor hidden(int64_t time) override { return triu(ones({time, time}, {DType::u8}), 2); }
};

struct SoftmaxOverQueries : OwnWriter {
  Tensor probabilities(const Tensor& scores) override {
    return softmax(masked_fill(scores, hidden(scores.size(-1)), -1e9), -2);
  }
};

// The packed projection is split as [heads, 3, size], as in GPT-NeoX, instead of [3, heads, size].
struct PackedByHead : OwnWriter {
  std::vector<Tensor> queries_keys_values(const Tensor& packed) override {
    const Tensor by_head = reshape(packed, {packed.size(0), packed.size(1), kHeads, 3, kWidth / kHeads});
    std::vector<Tensor> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(permute(select(by_head, 3, i), {0, 2, 1, 3}));
    return parts;
  }
};

// The heads are joined before they are moved to the last axis.
struct JoinedEarly : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    const std::vector<Tensor> p = queries_keys_values(b.qkv(normalize(x, b.norm1)));
    const Tensor mixed = matmul(probabilities(scores(p[0], p[1])), p[2]);
    const Tensor after = x + b.proj(reshape(mixed, x.shape()));
    return after + feed_forward(normalize(after, b.norm2), b);
  }
};

struct SoftmaxInSingle : OwnWriter {
  Tensor probabilities(const Tensor& scores) override {
    return isonorm::to(OwnWriter::probabilities(isonorm::to(scores, DType::f32)), DType::f64);
  }
};

// Rotary positions: keys begin one position later than queries.
struct RotaryWriter : OwnWriter {
  virtual Tensor turn(const Tensor& x, int64_t first) {
    return permute(rotary(permute(x, {0, 2, 1, 3}), {.first = first}), {0, 2, 1, 3});
  }
  Tensor scores(const Tensor& q, const Tensor& k) override { return OwnWriter::scores(turn(q, 0), turn(k, 0)); }
};
struct KeysFromOne : RotaryWriter {
  Tensor scores(const Tensor& q, const Tensor& k) override { return OwnWriter::scores(turn(q, 0), turn(k, 1)); }
};

// x W instead of x W^T for a square matrix.
struct ProjTransposed : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    const std::vector<Tensor> p = queries_keys_values(b.qkv(normalize(x, b.norm1)));
    const Tensor mixed = permute(matmul(probabilities(scores(p[0], p[1])), p[2]), {0, 2, 1, 3});
    const Tensor after = x + matmul(reshape(mixed, x.shape()), b.proj.weight) + b.proj.bias;
    return after + feed_forward(normalize(after, b.norm2), b);
  }
};

struct NoQkvBias : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    const std::vector<Tensor> p =
        OwnWriter::queries_keys_values(matmul(normalize(x, b.norm1), transpose(b.qkv.weight, 0, 1)));
    const Tensor mixed = permute(matmul(probabilities(scores(p[0], p[1])), p[2]), {0, 2, 1, 3});
    const Tensor after = x + b.proj(reshape(mixed, x.shape()));
    return after + feed_forward(normalize(after, b.norm2), b);
  }
};

struct DetachedValues : OwnWriter {
  std::vector<Tensor> queries_keys_values(const Tensor& packed) override {
    std::vector<Tensor> p = OwnWriter::queries_keys_values(packed);
    p[2] = detach(p[2]);
    return p;
  }
};

// Masks the scores of padding, ids below 3. The second model masks queries instead of keys.
struct MaskedWriter : OwnWriter {
  Tensor padding = {};
  bool keys = true;
  Tensor embed(const Tensor& ids) override {
    padding = ids < 3.0;
    return OwnWriter::embed(ids);
  }
  Tensor probabilities(const Tensor& scores) override {
    const Tensor at = keys ? reshape(padding, {kBatch, 1, 1, kTime}) : reshape(padding, {kBatch, 1, kTime, 1});
    return OwnWriter::probabilities(masked_fill(scores, at, -1e4));
  }
};
struct HidesQueries : MaskedWriter {
  HidesQueries() { keys = false; }
};

}  // namespace

std::vector<Mistake> attention_mistakes() {
  return {
      {{"scores scaled by the width", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`"},
       compare_writers<ScaledByWidth>},
      {{"scores of the second block halved", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.1.qkv.weight in blocks.1.qkv: `packed_attention`"},
       compare_writers<SecondBlockScaled>},
      {{"a mask that lets the next token through", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`"},
       compare_writers<SeesNext>},
      {{"softmax over the queries", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`"},
       compare_writers<SoftmaxOverQueries>},
      {{"softmax in f32", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`"},
       compare_writers<SoftmaxInSingle>},
      {{"qkv packed by head", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`"},
       compare_writers<PackedByHead>},
      {{"heads joined before the time", "forward", "", "in blocks.0.proj is the first"}, compare_writers<JoinedEarly>},
      {{"a square weight that is not transposed", "forward", "", "in blocks.0.proj is the first"},
       compare_writers<ProjTransposed>},
      {{"a bias that is not added", "forward", "",
        "in blocks.0.qkv is the first result that the second model does not have; in the second model no gradient "
        "reaches "
        "blocks.0.qkv.bias"},
       compare_writers<NoQkvBias>},
      {{"rotary keys from 1", "forward", "", "`rotary` [4, 6, 3, 4] after blocks.0.qkv is the first"},
       compare_writers<KeysFromOne, RotaryWriter>},
      {{"padding hides queries", "forward", "", "`where` [4, 3, 6, 6] after blocks.0.qkv is the first"},
       compare_writers<HidesQueries, MaskedWriter>},
      {{"detached values", "backward", "", "the next gradient, of `linear` [4, 6, 36] of blocks.1.qkv.weight"},
       compare_writers<DetachedValues>},
  };
}

}  // namespace isonorm::unseen
