// Mistakes in the blocks of a language model: norms, positions, residuals, dropout.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_writer.h"

namespace isonorm::unseen {

namespace {

// One norm of four uses the sample variance, like torch.var().
struct SampleVariance : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    if (&layer != &blocks[1].norm2) return OwnWriter::normalize(x, layer);
    return (x - mean(x, {-1}, true)) / sqrt(var(x, {-1}, 1, true) + 1e-5) * layer.weight + layer.bias;
  }
};

// eps is added after the root.
struct EpsOutside : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    const Tensor centred = x - mean(x, {-1}, true);
    return centred / (sqrt(mean(square(centred), {-1}, true)) + 1e-5) * layer.weight + layer.bias;
  }
};

// The feed-forward output is added to the norm's output instead of the stream.
struct NormedResidual : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    const Tensor after = normalize(x + attend(normalize(x, b.norm1), b), b.norm2);
    return after + feed_forward(after, b);
  }
};

struct PositionsFromOne : OwnWriter {
  Tensor embed(const Tensor& ids) override {
    return embedding(tokens.weight, ids) + embedding(positions.weight, arange(ids.size(1)) + 1);
  }
};

// The residual of the second block is detached: only the branch passes gradients.
struct DetachedResidual : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    if (&b != &blocks[1]) return OwnWriter::run(b, x);
    const Tensor after = detach(x) + attend(normalize(x, b.norm1), b);
    return after + feed_forward(normalize(after, b.norm2), b);
  }
};

// The mean of the norm is detached.
struct DetachedMean : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    const Tensor centred = x - detach(mean(x, {-1}, true));
    return centred / sqrt(mean(square(centred), {-1}, true) + 1e-5) * layer.weight + layer.bias;
  }
};

// An own GELU with the derivative of its tanh form.
struct GeluWithOtherSlope : OwnWriter {
  static Tensor own_gelu(const Tensor& x) {
    const Tensor y = gelu(detach(x));
    if (autograd::Node* node = track("own_gelu", {&y}, {&x}))
      node->backward = [x = detach(x)](Flow& flow) {
        const double c = std::sqrt(2 / std::numbers::pi);
        const Tensor t = tanh((x + 0.044715 * x * x * x) * c);
        flow.give(0, flow.out() * (0.5 * (t + 1) + 0.5 * c * x * (1 - t * t) * (1 + 3 * 0.044715 * x * x)));
      };
    return y;
  }
  Tensor activate(const Tensor& x) override { return own_gelu(x); }
};

// Both models have dropout after the feed-forward network; the hand-written one does not divide by 1 - p.
struct DropoutWriter : OwnWriter {
  Tensor feed_forward(const Tensor& x, Block& b) override {
    return dropout(OwnWriter::feed_forward(x, b), 0.2, training());
  }
};
struct UnscaledDropout : OwnWriter {
  Tensor feed_forward(const Tensor& x, Block& b) override {
    const Tensor y = OwnWriter::feed_forward(x, b);
    return training() ? dropout(y, 0.2) * 0.8 : y;
  }
};

// Sinusoidal positions as [sin, sin, .., cos, cos, ..] instead of [sin, cos, sin, cos, ..].
template <bool halves> struct Sinusoids : OwnWriter {
  Tensor& table = add_buffer("table", sinusoids());
  static Tensor sinusoids() {
    const Tensor time = unsqueeze(arange(0, kTime, 1, {DType::f64}), 1);
    const Tensor rate = pow(1e4, arange(0, kWidth, 2, {DType::f64}) / -static_cast<double>(kWidth));
    const Tensor s = sin(time * rate), c = cos(time * rate);
    return halves ? cat({s, c}, 1) : reshape(stack({s, c}, 2), {kTime, kWidth});
  }
  Tensor embed(const Tensor& ids) override { return embedding(tokens.weight, ids) + table; }
};

// The last norm does not subtract the mean.
struct RmsAtTheEnd : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    if (&layer != &norm) return OwnWriter::normalize(x, layer);
    return x / sqrt(mean(square(x), {-1}, true) + 1e-5) * layer.weight + layer.bias;
  }
};

// The second norm of each block is the first norm again.
struct NormUsedTwice : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    for (Block* b : blocks)
      if (&layer == &b->norm2) return OwnWriter::normalize(x, b->norm1);
    return OwnWriter::normalize(x, layer);
  }
};

// Mean and variance are over time instead of over the row.
struct NormOverTime : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    const Tensor centred = x - mean(x, {1}, true);
    return centred / sqrt(mean(square(centred), {1}, true) + 1e-5) * layer.weight + layer.bias;
  }
};

struct ScaledEmbedding : OwnWriter {
  Tensor embed(const Tensor& ids) override {
    return embedding(tokens.weight, ids) * std::sqrt(static_cast<double>(kWidth)) +
           embedding(positions.weight, arange(ids.size(1)));
  }
};

// Both layers use the weights of the first.
struct SharedBlock : OwnWriter {
  Tensor forward(const Tensor& ids) override {
    Tensor x = embed(ids);
    for (int i = 0; i < 2; ++i) x = run(blocks[0], x);
    return logits(x);
  }
};

// The gradient that enters the second block is clamped.
struct ClampedGradient : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    if (&b == &blocks[1]) on_grad(x, [](const Tensor& g) { return clamp(g, -0.01, 0.01); });
    return OwnWriter::run(b, x);
  }
};

// Dropout with another probability.
struct MoreDropout : OwnWriter {
  Tensor feed_forward(const Tensor& x, Block& b) override {
    return dropout(OwnWriter::feed_forward(x, b), 0.3, training());
  }
};

struct EpsOfOne : OwnWriter {
  Tensor normalize(const Tensor& x, nn::LayerNorm& layer) override {
    const Tensor centred = x - mean(x, {-1}, true);
    const double eps = &layer == &blocks[1].norm1 ? 1e-6 : 1e-5;
    return centred / sqrt(mean(square(centred), {-1}, true) + eps) * layer.weight + layer.bias;
  }
};
struct NoFinalNorm : OwnWriter {
  Tensor logits(const Tensor& x) override { return head(x); }
};
struct HalfOfAGradient : OwnWriter {
  Tensor embed(const Tensor& ids) override {
    const Tensor e = OwnWriter::embed(ids);
    return e * 0.5 + detach(e) * 0.5;
  }
};
struct StraightThrough : OwnWriter {
  Tensor activate(const Tensor& x) override { return x + detach(OwnWriter::activate(x) - x); }
};

struct LeftInEval : DropoutWriter {
  LeftInEval() { eval(); }
};

// A block that runs without a graph.
struct BlockWithoutGraph : OwnWriter {
  Tensor run(Block& b, const Tensor& x) override {
    if (&b != &blocks[0]) return OwnWriter::run(b, x);
    const NoGrad no_graph;
    return OwnWriter::run(b, x);
  }
};

}  // namespace

std::vector<Mistake> block_mistakes() {
  return {
      {{"one norm with the sample variance", "forward",
        "another divisor: the second model divides by 11, the first by 12; with the same in blocks.1.norm2",
        "in blocks.1.norm2 is the first"},
       compare_writers<SampleVariance>},
      {{"eps outside of the root", "forward", "", "in blocks.0.norm1 is the first"}, compare_writers<EpsOutside>},
      {{"the last norm does not centre", "forward",
        "another norm: the second model computes rms_norm; with the same in norm the", "in norm is the first"},
       compare_writers<RmsAtTheEnd>},
      {{"another eps of one norm", "forward",
        "another eps: the second model has 1e-06, the first 1e-05; with the same in blocks.1.norm1",
        "in blocks.1.norm1 is the first"},
       compare_writers<EpsOfOne>},
      {{"no final norm", "forward", "", "in norm is the first"}, compare_writers<NoFinalNorm>},
      {{"half of a gradient", "backward", "", "agree down to `add` [4, 6, 12] after positions: the next gradient, of"},
       compare_writers<HalfOfAGradient>},
      {{"a straight-through activation", "backward", "", "agree down to `gelu` [4, 6, 24] after blocks.1.fc1"},
       compare_writers<StraightThrough>},
      {{"a norm that is used twice", "forward", "", "in blocks.0.norm2 is the first"}, compare_writers<NormUsedTwice>},
      {{"norms over the time", "forward", "", "in blocks.0.norm1 is the first"}, compare_writers<NormOverTime>},
      {{"the residual adds the normed row", "forward", "", "`add` [4, 6, 12] after blocks.0.fc2 is the first"},
       compare_writers<NormedResidual>},
      {{"positions from 1", "forward", "", "of positions.weight in positions is the first"},
       compare_writers<PositionsFromOne>},
      {{"sines before cosines", "forward", "", "of tokens.weight: `add` [4, 6, 12] after tokens.weight is the first"},
       compare_writers<Sinusoids<true>, Sinusoids<false>>},
      {{"an embedding scaled by the root of the width", "forward", "", "`add` [4, 6, 12] after positions is the first"},
       compare_writers<ScaledEmbedding>},
      {{"a block that runs twice", "forward", "", "in the second model no gradient reaches blocks.1.norm1.weight"},
       compare_writers<SharedBlock>},
      {{"dropout without 1 / (1 - p)", "forward", "a part that acts in training only",
        "and `dropout` [4, 6, 12] after blocks.0.fc2: `add`"},
       compare_writers<UnscaledDropout, DropoutWriter>},
      {{"another probability of dropout", "forward", "a part that acts in training only",
        "`dropout` [4, 6, 12] after blocks.0.fc2 is the first"},
       compare_writers<MoreDropout, DropoutWriter>},
      {{"a model left in eval()", "forward",
        "the two agree in eval() and differ because the second is in eval() and the first is not", ""},
       compare_writers<LeftInEval, DropoutWriter>},
      {{"a block without a graph", "backward", "", "in the second model no gradient reaches tokens.weight"},
       compare_writers<BlockWithoutGraph>},
      {{"a detached residual", "backward", "", "the next gradient, of `add` [4, 6, 12] after blocks.0.fc2"},
       compare_writers<DetachedResidual>},
      {{"a clamped gradient", "backward", "", "the next gradient, of `add` [4, 6, 12] after blocks.0.fc2"},
       compare_writers<ClampedGradient>},
      {{"a detached mean", "backward", "", "agree down to `layer_norm` [4, 6, 12] of norm.weight in norm:"},
       compare_writers<DetachedMean>},
      {{"GELU with the slope of its tanh form", "backward", "", "agree down to `gelu` [4, 6, 24] after blocks.1.fc1"},
       compare_writers<GeluWithOtherSlope>},
  };
}

}  // namespace isonorm::unseen
