#include "exchange/onnx/model.h"

#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/view.h"
#include "exchange/onnx/graph.h"
#include "io/fits.h"
#include "streams/stream.h"

namespace isonorm::onnx {
namespace {

using nn::Activation, nn::Positions;

class Builder {
 public:
  Builder(Graph& graph, const LazyState& state, const training::ModelOptions& model)
      : g_(graph),
        state_(state),
        model_(model),
        t_(model.transformer()),
        norm_(streams::row_of(training::stored_form(model)).norm) {}

  void gpt() {
    const bool learned = t_.positions == Positions::learned;
    // A position table with a single row would be broadcast to all ids. Slices of a longer table fail beyond its end.
    const Axis rows_of_ids = learned && model_.number("context") == 1 ? Axis(int64_t{1}) : "time";
    const Value ids = g_.input("ids", DType::i64, {"batch", rows_of_ids});
    const Value time = g_.add("Shape", {ids}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
    prepare([&] { return time; });
    Value x = g_.add("Gather", {g_.weight("token.weight"), ids});
    if (learned) {
      const Value first = g_.whole({model_.number("position_offset")});
      x = g_.add("Add", {x, slice(g_.weight("position.weight"), first, g_.add("Add", {first, time}))});
    }
    x = blocks(x);
    const Value rows = last(x);
    g_.output("logits", model_.flag("tied") ? tied_head(rows, ids) : linear("head", rows),
              {"batch", rows_of_ids, model_.number("vocab")});
  }

  void vit() {
    const int64_t image = model_.number("image"), channels = model_.number("channels"), patch = model_.number("patch");
    const int64_t side = image / patch;
    const bool cls = !model_.flag("mean_pool"), cls_position = cls && model_.flag("cls_position");
    const Value images = g_.input("images", g_.dtype(), {"batch", image, image, channels});
    prepare([&] { return g_.whole({side * side + (cls ? 1 : 0)}); });
    Value x = reshape(images, {0, side, patch, side, patch * channels});
    x = linear("patch", reshape(transpose(x, {0, 1, 3, 2, 4}), {0, side * side, patch * patch * channels}));
    const auto placed = [&](const Value& rows) {
      return t_.positions == Positions::learned ? g_.add("Add", {rows, g_.weight("position")}) : rows;
    };
    if (!cls_position) x = placed(x);
    if (cls) {
      const Value batch = g_.add("Shape", {images}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
      const Value shape =
          g_.add("Concat", {batch, g_.whole({1, state_.outline.at("cls").size(0)})}, {{"axis", int64_t{0}}});
      x = g_.add("Concat", {g_.add("Expand", {g_.weight("cls"), shape}), x}, {{"axis", int64_t{1}}});
    }
    if (cls_position) x = placed(x);
    x = blocks(x);
    x = cls ? g_.add("Gather", {x, g_.index(0)}, {{"axis", int64_t{1}}}) : mean(x, 1, false);
    g_.output("logits", linear("head", last(x)), {"batch", model_.number("classes")});
  }

 private:
  // Values that all blocks use: causal mask, ALiBi bias, rotations. rows() gives the sequence length, [1].
  template <class F> void prepare(const F& rows) {
    const bool causal = t_.causal, alibi = t_.positions == Positions::alibi;
    if (!causal && !alibi && !nn::rotates(t_.positions)) return;
    const Value time = rows(), end = g_.add("Squeeze", {time, g_.whole({0})});
    const Value position = g_.add("Range", {g_.index(0), end, g_.index(1)});
    if (causal)
      hidden_ = g_.add(
          "Greater", {g_.add("Unsqueeze", {position, g_.whole({0})}), g_.add("Unsqueeze", {position, g_.whole({1})})});
    if (alibi) {  // slope x (key - last key)
      const Value back = g_.add("Sub", {position, g_.add("Sub", {time, g_.whole({1})})});
      bias_ = g_.add("Mul", {g_.constant("slopes", slopes()), cast(back, g_.dtype())});
    }
    if (nn::rotates(t_.positions)) {  // in f64, since position times frequency is a large angle
      const Value at = reshape(cast(position, DType::f64), {-1, 1, 1, 1});
      const Value angles = g_.add("Mul", {at, g_.constant("frequencies", frequencies())});
      cosine_ = cast(g_.add("Cos", {angles}), g_.dtype());
      sine_ = cast(g_.add("Sin", {angles}), g_.dtype());
    }
  }

  Value blocks(Value x) {
    for (int64_t i = 0; i < t_.depth; ++i) {
      const std::string block = text("blocks.", i);
      g_.enter(block + ".attn");
      const Value rows = normed(block + ".norm1", x, norm_, t_.width);
      const Value other = t_.parallel && !t_.shared_norm ? normed(block + ".norm2", x, norm_, t_.width) : rows;
      x = g_.add("Add", {x, attention(block + ".attn", rows)});
      g_.enter(block + ".mlp");
      x = g_.add("Add", {x, mlp(block + ".mlp", t_.parallel ? other : normed(block + ".norm2", x, norm_, t_.width))});
    }
    g_.enter("head");
    return x;
  }

  Value last(const Value& x) { return normed("norm", x, t_.final_norm ? norm_ : NormKind::none, t_.width); }

  // Self-attention. qkv is [..., time, (heads + 2 kv_heads) head_width]. If query heads share key heads, the queries
  // get one axis more.
  Value attention(const std::string& path, const Value& x) {
    const int64_t heads = t_.heads, shared = t_.kv_heads, size = t_.head_width;
    const Value rows = reshape(linear(path + ".qkv", x), {0, 0, heads + 2 * shared, size});
    const std::vector<Value> parts = g_.split(rows, 2, {heads, shared, shared});
    const auto ready = [&](const Value& v, const char* norm) {
      return turned(normed(path + norm, v, t_.qk_norm, size));
    };
    Value q = transpose(ready(parts[0], ".q_norm"), {0, 2, 1, 3});
    Value k = transpose(ready(parts[1], ".k_norm"), {0, 2, 3, 1}), v = transpose(parts[2], {0, 2, 1, 3});
    if (shared != heads) {
      q = reshape(q, {0, shared, heads / shared, -1, size});
      k = g_.add("Unsqueeze", {k, g_.whole({2})}), v = g_.add("Unsqueeze", {v, g_.whole({2})});
    }
    q = g_.add("Mul", {q, g_.number(1 / std::sqrt(static_cast<double>(size)))});
    Value scores = g_.add("MatMul", {q, k});
    if (!bias_.empty()) scores = g_.add("Add", {scores, bias_});
    if (!hidden_.empty()) scores = g_.add("Where", {hidden_, g_.number(-INFINITY), scores});
    Value y = g_.add("MatMul", {g_.add("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
    if (shared != heads) y = reshape(y, {0, heads, -1, size});
    return linear(path + ".proj", reshape(transpose(y, {0, 2, 1, 3}), {0, 0, heads * size}));
  }

  // Rotated heads [batch, time, heads, head_width] (2104.09864, equation 34).
  Value turned(const Value& x) {
    if (cosine_.empty()) return x;
    const int64_t width = t_.rotary_width(), rest = t_.head_width - width;
    const bool halves = t_.positions == Positions::rotary_halves;
    const int64_t axis = halves ? 3 : 4;  // the axis of a pair
    const std::vector<Value> parts = rest > 0 ? g_.split(x, 3, {width, rest}) : std::vector{x};
    const Value pairs =
        halves ? reshape(parts[0], {0, 0, 0, 2, width / 2}) : reshape(parts[0], {0, 0, 0, width / 2, 2});
    const std::vector<Value> p = g_.split(pairs, axis, {1, 1});
    const auto sum = [&](const char* op, const Value& first, const Value& second) {
      return g_.add(op, {g_.add("Mul", {p[0], first}), g_.add("Mul", {p[1], second})});
    };
    const Value both = g_.add("Concat", {sum("Sub", cosine_, sine_), sum("Add", sine_, cosine_)}, {{"axis", axis}});
    const Value out = reshape(both, {0, 0, 0, width});
    return rest > 0 ? g_.add("Concat", {out, parts[1]}, {{"axis", int64_t{3}}}) : out;
  }

  Value mlp(const std::string& path, const Value& x) {
    const Value h = linear(path + ".fc1", x);
    const auto times = [&](const Value& a, const Value& b) { return g_.add("Mul", {a, b}); };
    const auto times_sigmoid = [&](const Value& a, double factor) {
      return times(a, g_.add("Sigmoid", {factor == 1 ? a : times(a, g_.number(factor))}));
    };
    const auto half_of = [&](const Value& a) {  // h / 2 (1 + a)
      return times(times(h, g_.number(0.5)), g_.add("Add", {a, g_.number(1)}));
    };
    const auto activated = [&]() -> Value {
      switch (t_.activation) {
        case Activation::gelu:
          return half_of(g_.add("Erf", {g_.add("Div", {h, g_.number(std::sqrt(2.0))})}));
        case Activation::gelu_tanh: {
          const Value cube = times(g_.add("Pow", {h, g_.number(3)}), g_.number(0.044715));
          return half_of(g_.add("Tanh", {times(g_.add("Add", {h, cube}), g_.number(std::sqrt(2 / M_PI)))}));
        }
        case Activation::relu:
          return g_.add("Relu", {h});
        case Activation::silu:
          return times_sigmoid(h, 1);
        case Activation::swiglu:
          return times(times_sigmoid(linear(path + ".gate", x), 1), h);
        case Activation::quick_gelu:
          return times_sigmoid(h, 1.702);
      }
      return h;
    };
    return linear(path + ".fc2", activated());
  }

  // x W^T + b, times the branch's scale if it has one.
  Value linear(const std::string& path, const Value& x) {
    return with(path, ".scale", "Mul", biased(path, g_.add("MatMul", {x, g_.weight(path + ".weight", true)})));
  }
  Value biased(const std::string& path, const Value& x) { return with(path, ".bias", "Add", x); }
  Value with(const std::string& path, const char* end, const char* op, const Value& x) {
    const std::string name = path + end;
    return state_.outline.find(name) ? g_.add(op, {x, g_.weight(name)}) : x;
  }

  // The head with weight tying, by Gemm: a transposed copy would be as large as the table. ids [batch, time].
  Value tied_head(const Value& rows, const Value& ids) {
    const Dims& table = state_.outline.at("token.weight").shape();
    const Value flat = reshape(rows, {-1, table[1]}), size = g_.whole({table[0]});
    const Value product = g_.add("Gemm", {flat, g_.weight("token.weight")}, {{"transB", int64_t{1}}});
    const Value shape = g_.add("Concat", {g_.add("Shape", {ids}), size}, {{"axis", int64_t{0}}});
    return biased("head", g_.add("Reshape", {product, shape}, {{"allowzero", int64_t{1}}}));
  }

  // gain * normalize(x) + bias over the last axis of `width` entries. Compressed rows store all but the last
  // (core/formulas/norm_spec.h).
  Value normed(const std::string& path, const Value& x, NormKind kind, int64_t width) {
    if (kind == NormKind::none) return x;
    const std::string gain = path + ".weight";
    const auto scale = [&] {  // runtimes fuse a norm only if it ends with a gain
      return state_.outline.find(gain)
                 ? g_.weight(gain)
                 : g_.constant(text("ones ", width),
                               detached::to(from_vector(std::vector<double>(width, 1), {width}), g_.dtype()));
    };
    const auto by_name = [&](const char* op) {
      return g_.add(op, {x, scale()}, {{"axis", int64_t{-1}}, {"epsilon", io::narrowed_to_f32(t_.eps, "onnx: eps")}});
    };
    if (g_.dtype() == DType::f32 && kind == NormKind::layer) return biased(path, by_name("LayerNormalization"));
    if (g_.dtype() == DType::f32 && kind == NormKind::rms && g_.opset() >= 23)
      return biased(path, by_name("RMSNormalization"));
    const Value rows = kind == NormKind::layer ? g_.add("Sub", {x, mean(x, -1, true)}) : x;
    const Value squares = g_.add("Pow", {rows, g_.number(2)});
    const auto sum = [&](const Value& v) { return g_.add("ReduceSum", {v, g_.whole({-1})}); };
    Value square;
    if (kind == NormKind::layer || kind == NormKind::rms) {
      square = mean(squares, -1, true);
    } else {
      square = sum(squares);
      if (kind == NormKind::crms) square = g_.add("Add", {square, g_.add("Pow", {sum(x), g_.number(2)})});
      square = g_.add("Div", {square, g_.number(static_cast<double>(width))});
    }
    const Value root = g_.add("Sqrt", {g_.add("Add", {square, g_.number(t_.eps)})});
    const Value y = g_.add("Div", {rows, root});
    return biased(path, kind == NormKind::rms ? g_.add("Mul", {y, scale()}) : with(path, ".weight", "Mul", y));
  }

  Value mean(const Value& x, int64_t axis, bool keeps) {
    const Attribute kept{"keepdims", int64_t{keeps}};
    if (g_.opset() < 18) return g_.add("ReduceMean", {x}, {{"axes", std::vector<int64_t>{axis}}, kept});
    return g_.add("ReduceMean", {x, g_.whole({axis})}, {kept});
  }
  Value reshape(const Value& x, const std::vector<int64_t>& shape) { return g_.add("Reshape", {x, g_.whole(shape)}); }
  Value transpose(const Value& x, const std::vector<int64_t>& order) {
    return g_.add("Transpose", {x}, {{"perm", order}});
  }
  Value cast(const Value& x, DType dtype) { return g_.add("Cast", {x}, {{"to", data_type(dtype)}}); }
  // Rows begin to end; both [1].
  Value slice(const Value& x, const Value& begin, const Value& end) {
    return g_.add("Slice", {x, begin, end, g_.whole({0})});
  }

  // Slopes of ALiBi (2108.12409, section 3). n heads, n a power of two: 2^(-8 i / n). Otherwise the slopes of the
  // next lower power of two, then every other slope of the next higher one.
  Tensor slopes() const {
    const auto above = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(t_.heads))), below = above / 2;
    std::vector<double> slope;
    for (int64_t i = 0; i < t_.heads; ++i) {
      const int64_t number = above == t_.heads ? i + 1 : i < below ? 2 * (i + 1) : 2 * (i - below) + 1;
      slope.push_back(std::exp2(-8 * static_cast<double>(number) / static_cast<double>(above)));
    }
    const Dims shape = t_.kv_heads == t_.heads ? Dims{t_.heads, 1, 1} : Dims{t_.kv_heads, t_.heads / t_.kv_heads, 1, 1};
    return detached::to(from_vector(slope, shape), g_.dtype());
  }

  // Frequencies of rotary positions (2104.09864), shaped for the pairs of a head.
  Tensor frequencies() const {
    const int64_t half = t_.rotary_width() / 2;
    std::vector<double> f;
    for (int64_t i = 0; i < half; ++i)
      f.push_back(std::pow(t_.rotary_base, -static_cast<double>(i) / static_cast<double>(half)));
    return from_vector(f, t_.positions == Positions::rotary_halves ? Dims{1, 1, 1, half} : Dims{1, 1, half, 1});
  }

  Graph& g_;
  const LazyState& state_;
  const training::ModelOptions& model_;
  const nn::TransformerOptions& t_;
  const NormKind norm_;
  Value hidden_, bias_, cosine_, sine_;  // empty if not used
};

}  // namespace

void save_model(const std::string& path, const LazyState& state, const training::ModelOptions& options,
                const Metadata& metadata, DType dtype, int64_t opset) {
  const training::ModelOptions model = options.complete();
  const std::string_view kind = model.row().name;
  check(kind == "gpt" || kind == "vit", "onnx: no graph is known of a model of kind ", kind, ", expected gpt or vit");
  const std::string unknown = options.first_without(training::kInOnnx);
  check(unknown.empty(), "onnx: no graph is known of a model with ", unknown);
  Graph graph(dtype, opset);
  Builder builder(graph, state, model);
  kind == "gpt" ? builder.gpt() : builder.vit();
  Metadata all = model.description();
  all.insert(metadata.begin(), metadata.end());
  graph.save(path, state, all);
}

}  // namespace isonorm::onnx
