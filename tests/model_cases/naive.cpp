// A model in single ops, written from the papers: the reference of tests/model_cases. It shares no layer with nn/.
#include <bit>
#include <cmath>
#include <functional>

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "autograd/ops/loss.h"
#include "tests/model_cases/model_case.h"

namespace isonorm::test {
namespace {

using nn::Activation, nn::Positions;

// One of the model's stacks of blocks.
struct StackOf {
  std::string path;  // "blocks"
  int64_t depth, other_depth;
  nn::Stack stack;
  bool causal;
};

class Naive {
 public:
  Naive(const training::ModelOptions& m, const TensorMap& weights)
      : m_(m.complete()),
        t_(m_.transformer()),
        w_(weights),
        name_(t_.connection.name),
        kind_(streams::norm_of(m_.stream().form)) {}

  Tensor logits(const Tensor& inputs) const {
    if (m_.row().name == std::string_view("vit")) return vit(inputs);
    return m_.row().name == std::string_view("gpt") ? gpt(inputs) : translator(inputs);
  }

 private:
  struct Rows {
    Tensor x, dual;  // dual: ResiDual's second stream, the sum of the embeddings and all branches
  };
  using Branch = std::function<Tensor(const Tensor&)>;

  Tensor gpt(const Tensor& ids) const {
    Rows r = entered("token.weight", "position.weight", m_.number("position_offset"), ids);
    run(r, {"blocks", t_.depth, 0, nn::Stack::alone, true});
    return head(last(r, "norm"), "token.weight");
  }

  Tensor vit(const Tensor& images) const {
    const int64_t n = images.size(0), patch = m_.number("patch"), side = m_.number("image") / patch,
                  channels = m_.number("channels");
    const Tensor cut = permute(reshape(images, {n, side, patch, side, patch, channels}), {0, 1, 3, 2, 4, 5});
    Tensor x = linear(reshape(cut, {n, side * side, patch * patch * channels}), "patch");
    const bool learned = t_.positions == Positions::learned, cls = !m_.flag("mean_pool"),
               whole = cls && m_.flag("cls_position");
    if (learned && !whole) x = x + w_.at("position");
    if (cls) x = cat({expand(w_.at("cls"), {n, 1, t_.width}), x}, 1);
    if (learned && whole) x = x + w_.at("position");
    Rows r{x, x};
    run(r, {"blocks", t_.depth, 0, nn::Stack::alone, t_.causal});
    const auto pooled = [&](const Tensor& y) { return m_.flag("mean_pool") ? mean(y, {1}) : select(y, 1, 0); };
    r = {pooled(r.x), pooled(r.dual)};
    return head(last(r, "norm"), "");
  }

  Tensor translator(const Tensor& ids) const {
    const int64_t time = ids.size(1) / 2, deep = m_.number("decoder_depth");
    const Tensor source = narrow(ids, 1, 0, time), target = narrow(ids, 1, time, time);
    const std::string table = m_.flag("shared") ? "target.weight" : "source.weight";
    const Tensor padded = reshape(eq(source, static_cast<double>(m_.number("pad"))), {ids.size(0), 1, 1, time});
    const Tensor mask = masked_fill(zeros({ids.size(0), 1, 1, time}, {DType::f64}), padded, -INFINITY);
    Rows encoder = entered(table, "source_position.weight", 0, source);
    run(encoder, {"encoder", t_.depth, deep, nn::Stack::encoder, false}, mask);
    Rows decoder = entered("target.weight", "target_position.weight", 0, target);
    run(decoder, {"decoder", deep, t_.depth, nn::Stack::decoder, true}, mask, last(encoder, "encoder_norm"));
    return head(last(decoder, "norm"), "target.weight");
  }

  Rows entered(const std::string& table, const std::string& positions, int64_t offset, const Tensor& ids) const {
    Tensor x = embedding(w_.at(table), ids);
    if (t_.positions == Positions::learned) x = x + narrow(w_.at(positions), 0, offset, ids.size(1));
    return {x, x};
  }

  Tensor head(const Tensor& x, const std::string& table) const {
    if (m_.flag("tied")) return matmul(x, transpose(w_.at(table), 0, 1));
    return linear(x, "head", t_.bias && (!m_.has("head_bias") || m_.flag("head_bias")));
  }

  Tensor linear(const Tensor& x, const std::string& name) const { return linear(x, name, t_.bias); }
  Tensor linear(const Tensor& x, const std::string& name, bool bias) const {
    const Tensor y = matmul(x, transpose(w_.at(name + ".weight"), 0, 1));
    return bias ? y + w_.at(name + ".bias") : y;
  }

  Tensor norm(const Tensor& x, const std::string& name, NormKind kind, double eps) const {
    if (kind == NormKind::none) return x;
    const Tensor centred = kind == NormKind::layer ? x - mean(x, {-1}, true) : x;
    Tensor y = centred / sqrt(mean(square(centred), {-1}, true) + eps);
    const bool of_heads = name.ends_with("q_norm") || name.ends_with("k_norm");
    if (t_.affine) y = y * w_.at(name + ".weight");
    if (t_.affine && t_.norm_bias && !(of_heads && kind == NormKind::rms)) y = y + w_.at(name + ".bias");
    return y;
  }
  Tensor norm(const Tensor& x, const std::string& name) const { return norm(x, name, kind_, t_.eps); }

  // The rows that the head or a cross-attention reads.
  Tensor last(const Rows& r, const std::string& name) const {
    if (name_ == "residual") return r.x + norm(r.dual, name, kind_, 1e-7);
    const bool none = !t_.final_norm || name_ == "post_ln" || name_ == "deepnorm" || name_ == "deeppost_gpas";
    return none ? r.x : norm(r.x, name);
  }

  // x [batch, heads, time, size]: rotates pairs of the leading entries by position * base^(-2i / rotated).
  Tensor rotated(const Tensor& x) const {
    if (!rotates(t_.positions)) return x;
    const int64_t time = x.size(2), size = x.size(3), width = t_.rotary_width();
    std::vector<double> cosine(time * size, 1), sine(time * size, 0), swap(size * size, 0);
    for (int64_t i = 0; i < width / 2; ++i) {
      const bool halves = t_.positions == Positions::rotary_halves;
      const int64_t a = halves ? i : 2 * i, b = halves ? width / 2 + i : 2 * i + 1;
      swap[b * size + a] = -1, swap[a * size + b] = 1;  // (x swap)[a] = -x[b], (x swap)[b] = x[a]
      for (int64_t p = 0; p < time; ++p)
        for (const int64_t at : {a, b}) {
          const double angle = static_cast<double>(p) *
                               std::pow(t_.rotary_base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
          cosine[p * size + at] = std::cos(angle), sine[p * size + at] = std::sin(angle);
        }
    }
    return x * from_vector(cosine, {time, size}) +
           matmul(x, from_vector(swap, {size, size})) * from_vector(sine, {time, size});
  }

  // The causal mask and the biases of ALiBi, added to the scores: [heads, time, time].
  Tensor scores_added(int64_t time, bool causal) const {
    std::vector<double> added;
    const auto slope = [&](int64_t head) {  // 2108.12409, section 3 and its code
      const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(t_.heads)));
      const double i = head < below ? static_cast<double>(head + 1) : static_cast<double>(head - below) + 0.5;
      return std::exp2(-8 * i / static_cast<double>(below));
    };
    for (int64_t head = 0; head < t_.heads; ++head)
      for (int64_t query = 0; query < time; ++query)
        for (int64_t key = 0; key < time; ++key)
          added.push_back(causal && key > query              ? -INFINITY
                          : t_.positions == Positions::alibi ? slope(head) * static_cast<double>(key - query)
                                                             : 0);
    return from_vector(added, {t_.heads, time, time});
  }

  // q, k, v: rows of heads one after the other. Keys and values are each used by heads / kv_heads query heads.
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const std::string& name, bool self, bool causal,
                const Tensor& mask) const {
    const auto heads = [&](const Tensor& x, const char* head_norm) {
      const int64_t n = x.size(2) / t_.head_width;
      Tensor y = transpose(reshape(x, {x.size(0), x.size(1), n, t_.head_width}), 1, 2);
      if (self && *head_norm) y = norm(y, name + head_norm, t_.qk_norm, t_.eps);
      std::vector<Tensor> all;
      for (int64_t h = 0; h < t_.heads; ++h) all.push_back(narrow(y, 1, h * n / t_.heads, 1));
      return cat(all, 1);
    };
    Tensor queries = heads(q, "q_norm"), keys = heads(k, "k_norm");
    if (self) queries = rotated(queries), keys = rotated(keys);
    Tensor scores = matmul(queries, transpose(keys, 2, 3)) / std::sqrt(static_cast<double>(t_.head_width));
    if (self) scores = scores + scores_added(q.size(1), causal);
    if (mask.defined()) scores = scores + mask;
    const Tensor y = transpose(matmul(softmax(scores, -1), heads(v, "")), 1, 2);
    return reshape(y, {q.size(0), q.size(1), t_.heads * t_.head_width});
  }

  Tensor ended(const Tensor& x, const std::string& name) const {  // a branch's last map, and its layer scale
    const Tensor y = linear(x, name);
    return t_.branch.layer_scale != 0 ? y * w_.at(name + ".scale") : y;
  }
  Tensor inner(const Tensor& x, const std::string& name) const {
    return t_.connection.inner_norms ? norm(x, name, NormKind::layer, t_.eps) : x;
  }

  Tensor attention(const Tensor& x, const std::string& name, bool causal, const Tensor& mask) const {
    const Tensor qkv = linear(x, name + "qkv", t_.bias || t_.qkv_bias);
    const int64_t q = t_.heads * t_.head_width, kv = t_.kv_heads * t_.head_width;
    const Tensor y =
        attend(narrow(qkv, 2, 0, q), narrow(qkv, 2, q, kv), narrow(qkv, 2, q + kv, kv), name, true, causal, mask);
    return ended(inner(y, name + "inner_norm"), name + "proj");
  }

  Tensor cross(const Tensor& x, const Tensor& encoded, const std::string& name, const Tensor& mask) const {
    const Tensor kv = linear(encoded, name + "kv", t_.bias || t_.qkv_bias);
    const int64_t half = kv.size(2) / 2;
    const Tensor y = attend(linear(x, name + "q", t_.bias || t_.qkv_bias), narrow(kv, 2, 0, half),
                            narrow(kv, 2, half, half), name, false, false, mask);
    return ended(y, name + "proj");
  }

  Tensor mlp(const Tensor& x, const std::string& name) const {
    const Tensor h = linear(x, name + "fc1");
    const auto activated = [&] {
      switch (t_.activation) {
        case Activation::gelu:
          return gelu(h);
        case Activation::gelu_tanh:
          return h * 0.5 * (tanh((h + h * h * h * 0.044715) * std::sqrt(2 / M_PI)) + 1);
        case Activation::relu:
          return relu(h);
        case Activation::silu:
          return h * sigmoid(h);
        case Activation::quick_gelu:
          return h * sigmoid(h * 1.702);
        case Activation::swiglu: {
          const Tensor gate = linear(x, name + "gate");
          return gate * sigmoid(gate) * h;
        }
      }
      return Tensor();
    };
    return ended(inner(activated(), name + "inner_norm"), name + "fc2");
  }

  // phi(x) = x - silu(a) x with the block's gate a, whose gradient does not reach x (2506.22049, section 3).
  Tensor gated(const Tensor& x, const std::string& block) const {
    if (name_.find("gpas") == std::string::npos) return x;
    return x - silu(w_.at(block + "norm1.gate")) * detach(x);
  }

  double alpha(const StackOf& s) const {  // 2203.00555, figure 2
    const auto n = static_cast<double>(s.depth), m = static_cast<double>(s.other_depth);
    if (s.stack == nn::Stack::encoder) return 0.81 * std::pow(n * n * n * n * m, 1 / 16.);
    return std::pow((s.stack == nn::Stack::decoder ? 3 : 2) * n, 0.25);
  }

  // The stream behind a sub-layer of block `index`.
  Tensor joined(const Tensor& x, const Branch& branch, const StackOf& s, int64_t index, const std::string& norm_name,
                const std::string& block) const {
    const bool posts = index < s.depth / 4;  // the first quarter of Mix-LN
    if (name_ == "post_ln" || name_ == "residual" || (name_ == "mix_ln" && posts) ||
        (name_ == "pre_then_post" && index > 0))
      return norm(x + branch(x), norm_name);
    if (name_ == "post_pre_gpas" && posts) return norm(gated(x, block) + branch(x), norm_name);
    if (name_ == "deepnorm" || name_ == "deeppost_gpas") return norm(gated(x, block) * alpha(s) + branch(x), norm_name);
    Tensor read = norm(x, norm_name);
    if (name_ == "layer_norm_scaling" || name_ == "lns_gpas") read = read / std::sqrt(static_cast<double>(index + 1));
    Tensor y = branch(read);
    if (name_ == "sandwich" || name_ == "sandwich_gpas") y = norm(y, norm_name + ".after");
    return gated(x + y, block);
  }

  void run(Rows& r, const StackOf& s, const Tensor& mask = {}, const Tensor& encoded = {}) const {
    const bool decoder = s.stack == nn::Stack::decoder;
    for (int64_t i = 0; i < s.depth; ++i) {
      const std::string block = text(s.path, '.', i, '.');
      const auto self = [&](const Tensor& x) {
        return attention(x, block + "attn.", s.causal, decoder ? Tensor() : mask);
      };
      const auto other = [&](const Tensor& x) { return cross(x, encoded, block + "cross.", mask); };
      const auto feed = [&](const Tensor& x) { return mlp(x, block + "mlp."); };
      if (t_.parallel) {
        const Tensor one = norm(r.x, block + "norm1"), two = t_.shared_norm ? one : norm(r.x, block + "norm2");
        r.x = r.x + self(one) + feed(two);
        continue;
      }
      const auto sub_layer = [&](const Branch& branch, const char* name) {
        const Branch added = [&](const Tensor& x) {
          const Tensor y = branch(x);
          r.dual = r.dual + y;
          return y;
        };
        r.x = joined(r.x, added, s, i, block + name, block);
      };
      sub_layer(self, "norm1");
      if (decoder) sub_layer(other, "cross_norm");
      sub_layer(feed, "norm2");
    }
  }

  const training::ModelOptions m_;
  const nn::TransformerOptions& t_;
  const TensorMap& w_;
  const std::string name_;  // of the arrangement
  const NormKind kind_;
};

}  // namespace

Tensor naive_logits(const training::ModelOptions& model, const TensorMap& weights, const Tensor& inputs) {
  return Naive(model, weights).logits(inputs);
}

}  // namespace isonorm::test
