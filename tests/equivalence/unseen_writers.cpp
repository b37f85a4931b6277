// Mistakes in a language model written by hand: norms, positions, residuals, dropout, attention, losses.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_writer.h"

namespace isonorm::unseen {
namespace {

using Change = void (*)(OwnWriter&);
using Compare = std::function<Comparison()>;

Comparison compared(Writer& a, Writer& b, const training::Objective& loss = training::cross_entropy_of) {
  return compare_gradients(a, b, {}, loss, sentences);
}
// The library's model and a changed copy by hand.
Compare by(Change change) {
  return [=] {
    manual_seed(2);
    Writer a;
    OwnWriter b;
    change(b);
    return compared(a, b);
  };
}
// Two models by hand, changed alike, and the second one once more.
Compare both(Change alike, Change change) {
  return [=] {
    manual_seed(2);
    OwnWriter a, b;
    alike(a), alike(b), change(b);
    return compared(a, b);
  };
}

// Both models have dropout after the feed-forward network.
void with_dropout(OwnWriter& w) {
  w.feed_forward = [&w, own = w.feed_forward](const Tensor& x, Block& b) {
    return dropout(own(x, b), 0.2, w.training());
  };
}

// Positions as [sin, sin, .., cos, cos, ..] or as [sin, cos, sin, cos, ..].
template <bool halves> void sinusoids(OwnWriter& w) {
  const Tensor time = unsqueeze(arange(0, kTime, 1, kF64), 1);
  const Tensor rate = pow(1e4, arange(0, kWidth, 2, kF64) / -static_cast<double>(kWidth));
  const Tensor s = sin(time * rate), c = cos(time * rate);
  const Tensor table = halves ? cat({s, c}, 1) : reshape(stack({s, c}, 2), {kTime, kWidth});
  w.embed = [&w, table](const Tensor& ids) { return embedding(w.tokens.weight, ids) + table; };
}

// GELU with the derivative of its tanh form.
Tensor own_gelu(const Tensor& x) {
  const Tensor y = gelu(detach(x));
  if (autograd::Node* node = track("own_gelu", {&y}, {&x}))
    node->backward = [x = detach(x)](Flow& flow) {
      const double c = std::sqrt(2 / std::numbers::pi);
      const Tensor t = tanh((x + 0.044715 * x * x * x) * c);
      flow.give(0, flow.out() * (0.5 * (t + 1) + 0.5 * c * x * (1 - t * t) * (1 + 3 * 0.044715 * x * x)));
    };
  return y;
}

// Rotary positions; keys begin at `first`.
template <int64_t first> void rotary_from(OwnWriter& w) {
  const auto turn = [](const Tensor& x, int64_t at) {
    return permute(rotary(permute(x, {0, 2, 1, 3}), {.first = at}), {0, 2, 1, 3});
  };
  w.scores = [turn](const Tensor& q, const Tensor& k) {
    return matmul(turn(q, 0), transpose(turn(k, first), -2, -1)) / std::sqrt(static_cast<double>(kWidth / kHeads));
  };
}

// Masks the scores of padding, ids below 3: keys, or queries instead.
template <bool keys> void masks_padding(OwnWriter& w) {
  const auto padding = std::make_shared<Tensor>();
  w.embed = [padding, own = w.embed](const Tensor& ids) {
    *padding = ids < 3.0;
    return own(ids);
  };
  w.probabilities = [&w, padding](const Tensor& s) {
    const Tensor at = keys ? reshape(*padding, {kBatch, 1, 1, kTime}) : reshape(*padding, {kBatch, 1, kTime, 1});
    return softmax(masked_fill(masked_fill(s, at, -1e4), w.hidden(kTime), -std::numeric_limits<double>::infinity()),
                   -1);
  };
}

void tied(OwnWriter& w) { w.head.weight = w.tokens.weight; }

// The loss of the hand-written model is own_loss(model, batch, cross-entropy).
template <class Loss> Compare losses(const Loss& own_loss) {
  return [=] {
    manual_seed(2);
    Writer a;
    OwnWriter b;
    return compared(a, b, [&](nn::Module& model, const Examples& batch) -> Tensor {
      const Tensor l = training::cross_entropy_of(model, batch);
      return dynamic_cast<OwnWriter*>(&model) ? own_loss(model, batch, l) : l;
    });
  };
}

// Padding targets (ids below 3) become -100. The hand-written loss divides by the number of all tokens.
Comparison mean_over_padding() {
  manual_seed(2);
  Writer a;
  OwnWriter b;
  const auto padded = [](int64_t point) -> Examples {
    const Examples e = sentences(point);
    Tensor targets = to(e.targets, DType::f64);
    targets = masked_fill(targets, targets < 3.0, -100);
    return {e.inputs, to(targets, DType::i64)};
  };
  const auto loss = [](nn::Module& model, const Examples& batch) -> Tensor {
    if (!dynamic_cast<OwnWriter*>(&model)) return training::cross_entropy_of(model, batch);
    return mean(cross_entropy(model(batch.inputs), batch.targets, {.reduction = Reduction::none}));
  };
  return compare_gradients(a, b, {}, loss, padded);
}

// The hand-written loss shifts the logits, although the batch has already shifted the targets.
Comparison shifted_twice() {
  manual_seed(2);
  Writer a;
  OwnWriter b;
  return compared(a, b, [](nn::Module& model, const Examples& batch) -> Tensor {
    const Tensor logits = model(batch.inputs);
    const int64_t shift = dynamic_cast<OwnWriter*>(&model) ? 1 : 0, n = kTime - 1;
    return cross_entropy(narrow(logits, 1, 0, n), contiguous(narrow(batch.targets, 1, shift, n)));
  });
}

// The row for padding begins as zeros and gets no gradient; in the hand-written table it does.
Comparison trained_padding_row() {
  manual_seed(2);
  Writer a({.padding_idx = 0});
  OwnWriter b({.padding_idx = 0});
  return compared(a, b);
}

constexpr const char* kInAttention =
    "agree up to `linear` [4, 6, 36] of blocks.0.qkv.weight in blocks.0.qkv: `packed_attention`";

}  // namespace

Comparison right_writer() {
  return by([](OwnWriter&) {})();
}

std::vector<Comparison> unrepeatable_writers() {
  // A mask that is kept between calls and changed in place; noise from a generator that the comparison does not reset.
  return {by([](OwnWriter& w) {
            w.probabilities = [mask = zeros({kTime, kTime}, kF64)](const Tensor& s) mutable {
              mask += triu(full({kTime, kTime}, -2.0, kF64), 1);
              return softmax(s + mask, -1);
            };
          })(),
          by([](OwnWriter& w) {
            w.feed_forward = [own = w.feed_forward, noise = Generator{99}](const Tensor& x, Block& b) mutable {
              const Tensor y = own(x, b);
              return y + randn(y.shape(), y.options(), noise) * 0.01;
            };
          })()};
}

std::vector<Mistake> block_mistakes() {
  return {
      {{"one norm with the sample variance", "forward",
        "another divisor: the second model divides by 11, the first by 12; with the same in blocks.1.norm2",
        "in blocks.1.norm2 is the first"},
       by([](OwnWriter& w) {
         w.normalize = [&w, own = w.normalize](const Tensor& x, nn::LayerNorm& layer) {
           return &layer == &w.blocks[1].norm2 ? divided(centred(x), var(x, {-1}, 1, true), layer) : own(x, layer);
         };
       })},
      {{"eps outside of the root", "forward", "", "in blocks.0.norm1 is the first"}, by([](OwnWriter& w) {
         w.normalize = [](const Tensor& x, nn::LayerNorm& layer) {
           const Tensor c = centred(x);
           return c / (sqrt(mean(square(c), {-1}, true)) + 1e-5) * layer.weight + layer.bias;
         };
       })},
      {{"the last norm does not centre", "forward",
        "another norm: the second model computes rms_norm; with the same in norm the", "in norm is the first"},
       by([](OwnWriter& w) {
         w.normalize = [&w, own = w.normalize](const Tensor& x, nn::LayerNorm& layer) {
           return &layer == &w.norm ? divided(x, mean(square(x), {-1}, true), layer) : own(x, layer);
         };
       })},
      {{"another eps of one norm", "forward",
        "another eps: the second model has 1e-06, the first 1e-05; with the same in blocks.1.norm1",
        "in blocks.1.norm1 is the first"},
       by([](OwnWriter& w) {
         w.normalize = [&w](const Tensor& x, nn::LayerNorm& layer) {
           const Tensor c = centred(x);
           return divided(c, mean(square(c), {-1}, true), layer, &layer == &w.blocks[1].norm1 ? 1e-6 : 1e-5);
         };
       })},
      {{"no final norm", "forward", "", "in norm is the first"},
       by([](OwnWriter& w) { w.logits = [&w](const Tensor& x) { return w.head(x); }; })},
      {{"half of a gradient", "backward", "", "agree down to `add` [4, 6, 12] after positions: the next gradient, of"},
       by([](OwnWriter& w) {
         w.embed = [own = w.embed](const Tensor& ids) {
           const Tensor e = own(ids);
           return e * 0.5 + detach(e) * 0.5;
         };
       })},
      {{"a straight-through activation", "backward", "", "agree down to `gelu` [4, 6, 24] after blocks.1.fc1"},
       by([](OwnWriter& w) { w.activate = [own = w.activate](const Tensor& x) { return x + detach(own(x) - x); }; })},
      {{"a norm that is used twice", "forward", "", "in blocks.0.norm2 is the first"}, by([](OwnWriter& w) {
         w.normalize = [&w, own = w.normalize](const Tensor& x, nn::LayerNorm& layer) {
           for (Block* b : w.blocks)
             if (&layer == &b->norm2) return own(x, b->norm1);
           return own(x, layer);
         };
       })},
      {{"norms over the time", "forward", "", "in blocks.0.norm1 is the first"}, by([](OwnWriter& w) {
         w.normalize = [](const Tensor& x, nn::LayerNorm& layer) {
           const Tensor c = centred(x, 1);
           return divided(c, mean(square(c), {1}, true), layer);
         };
       })},
      {{"the residual adds the normed row", "forward", "", "`add` [4, 6, 12] after blocks.0.fc2 is the first"},
       by([](OwnWriter& w) {
         w.run = [&w](const Tensor& x, Block& b) {
           const Tensor after = w.normalize(x + w.attend(w.normalize(x, b.norm1), b), b.norm2);
           return after + w.feed_forward(after, b);
         };
       })},
      {{"positions from 1", "forward", "", "of positions.weight in positions is the first"}, by([](OwnWriter& w) {
         w.embed = [&w](const Tensor& ids) {
           return embedding(w.tokens.weight, ids) + embedding(w.positions.weight, arange(ids.size(1)) + 1);
         };
       })},
      {{"sines before cosines", "forward", "", "of tokens.weight: `add` [4, 6, 12] after tokens.weight is the first"},
       both(sinusoids<false>, sinusoids<true>)},
      {{"an embedding scaled by the root of the width", "forward", "", "`add` [4, 6, 12] after positions is the first"},
       by([](OwnWriter& w) {
         w.embed = [&w](const Tensor& ids) {
           return embedding(w.tokens.weight, ids) * std::sqrt(static_cast<double>(kWidth)) +
                  embedding(w.positions.weight, arange(ids.size(1)));
         };
       })},
      {{"a block that runs twice", "forward", "", "in the second model no gradient reaches blocks.1.norm1.weight"},
       by([](OwnWriter& w) { w.run = [&w, own = w.run](const Tensor& x, Block&) { return own(x, w.blocks[0]); }; })},
      {{"dropout without 1 / (1 - p)", "forward", "a part that acts in training only",
        "and `dropout` [4, 6, 12] after blocks.0.fc2: `add`"},
       both(with_dropout,
            [](OwnWriter& w) {
              w.feed_forward = [&w](const Tensor& x, Block& b) {
                const Tensor y = b.fc2(w.activate(b.fc1(x)));
                return w.training() ? dropout(y, 0.2) * 0.8 : y;
              };
            })},
      {{"another probability of dropout", "forward", "a part that acts in training only",
        "`dropout` [4, 6, 12] after blocks.0.fc2 is the first"},
       both(with_dropout,
            [](OwnWriter& w) {
              w.feed_forward = [&w](const Tensor& x, Block& b) {
                return dropout(b.fc2(w.activate(b.fc1(x))), 0.3, w.training());
              };
            })},
      {{"a model left in eval()", "forward",
        "the two agree in eval() and differ because the second is in eval() and the first is not", ""},
       both(with_dropout, [](OwnWriter& w) { w.eval(); })},
      {{"a block without a graph", "backward", "", "in the second model no gradient reaches tokens.weight"},
       by([](OwnWriter& w) {
         w.run = [&w, own = w.run](const Tensor& x, Block& b) {
           if (&b != &w.blocks[0]) return own(x, b);
           const NoGrad no_graph;
           return own(x, b);
         };
       })},
      {{"a detached residual", "backward", "", "the next gradient, of `add` [4, 6, 12] after blocks.0.fc2"},
       by([](OwnWriter& w) {  // of the second block
         w.run = [&w, own = w.run](const Tensor& x, Block& b) {
           if (&b != &w.blocks[1]) return own(x, b);
           const Tensor after = detach(x) + w.attend(w.normalize(x, b.norm1), b);
           return after + w.feed_forward(w.normalize(after, b.norm2), b);
         };
       })},
      {{"a clamped gradient", "backward", "", "the next gradient, of `add` [4, 6, 12] after blocks.0.fc2"},
       by([](OwnWriter& w) {
         w.run = [&w, own = w.run](const Tensor& x, Block& b) {
           if (&b == &w.blocks[1]) on_grad(x, [](const Tensor& g) { return clamp(g, -0.01, 0.01); });
           return own(x, b);
         };
       })},
      {{"a detached mean", "backward", "", "agree down to `layer_norm` [4, 6, 12] of norm.weight in norm:"},
       by([](OwnWriter& w) {
         w.normalize = [](const Tensor& x, nn::LayerNorm& layer) {
           const Tensor c = x - detach(mean(x, {-1}, true));
           return divided(c, mean(square(c), {-1}, true), layer);
         };
       })},
      {{"GELU with the slope of its tanh form", "backward", "", "agree down to `gelu` [4, 6, 24] after blocks.1.fc1"},
       by([](OwnWriter& w) { w.activate = own_gelu; })},
  };
}

std::vector<Mistake> attention_mistakes() {
  return {
      {{"scores scaled by the width", "forward", "", kInAttention}, by([](OwnWriter& w) {
         w.scores = [](const Tensor& q, const Tensor& k) {
           return matmul(q, transpose(k, -2, -1)) / std::sqrt(static_cast<double>(kWidth));
         };
       })},
      {{"scores of the second block halved", "forward", "",
        "agree up to `linear` [4, 6, 36] of blocks.1.qkv.weight in blocks.1.qkv: `packed_attention`"},
       by([](OwnWriter& w) {
         const auto second = std::make_shared<bool>();
         w.run = [&w, second, own = w.run](const Tensor& x, Block& b) {
           *second = &b == &w.blocks[1];
           return own(x, b);
         };
         w.scores = [second, own = w.scores](const Tensor& q, const Tensor& k) {
           return own(q, k) * (*second ? 0.5 : 1.0);
         };
       })},
      {{"a mask that lets the next token through", "forward", "", kInAttention}, by([](OwnWriter& w) {
         w.hidden = [](int64_t time) { return triu(ones({time, time}, {DType::u8}), 2); };
       })},
      {{"softmax over the queries", "forward", "", kInAttention}, by([](OwnWriter& w) {
         w.probabilities = [&w](const Tensor& s) { return softmax(masked_fill(s, w.hidden(kTime), -1e9), -2); };
       })},
      {{"softmax in f32", "forward", "", kInAttention}, by([](OwnWriter& w) {
         w.probabilities = [own = w.probabilities](const Tensor& s) { return own(s.to(DType::f32)).to(DType::f64); };
       })},
      {{"qkv packed by head", "forward", "", kInAttention}, by([](OwnWriter& w) {  // [heads, 3, size], as in GPT-NeoX
         w.queries_keys_values = [](const Tensor& packed) {
           const Tensor by_head = reshape(packed, {packed.size(0), packed.size(1), kHeads, 3, kWidth / kHeads});
           std::vector<Tensor> parts;
           for (int i = 0; i < 3; ++i) parts.push_back(permute(select(by_head, 3, i), {0, 2, 1, 3}));
           return parts;
         };
       })},
      {{"heads joined before the time", "forward", "", "in blocks.0.proj is the first"}, by([](OwnWriter& w) {
         w.attend = [&w](const Tensor& x, Block& b) { return b.proj(reshape(w.mixed(b.qkv(x)), x.shape())); };
       })},
      {{"a square weight that is not transposed", "forward", "", "in blocks.0.proj is the first"}, by([](OwnWriter& w) {
         w.attend = [&w](const Tensor& x, Block& b) {
           const Tensor heads = permute(w.mixed(b.qkv(x)), {0, 2, 1, 3});
           return matmul(reshape(heads, x.shape()), b.proj.weight) + b.proj.bias;
         };
       })},
      {{"a bias that is not added", "forward", "",
        "in blocks.0.qkv is the first result that the second model does not have; in the second model no gradient "
        "reaches blocks.0.qkv.bias"},
       by([](OwnWriter& w) {
         w.attend = [&w](const Tensor& x, Block& b) {
           const Tensor heads = permute(w.mixed(matmul(x, transpose(b.qkv.weight, 0, 1))), {0, 2, 1, 3});
           return b.proj(reshape(heads, x.shape()));
         };
       })},
      {{"rotary keys from 1", "forward", "", "`rotary` [4, 6, 3, 4] after blocks.0.qkv is the first"},
       both(rotary_from<0>, rotary_from<1>)},
      {{"padding hides queries", "forward", "", "`where` [4, 3, 6, 6] after blocks.0.qkv is the first"},
       both(masks_padding<true>, masks_padding<false>)},
      {{"detached values", "backward", "", "the next gradient, of `linear` [4, 6, 36] of blocks.1.qkv.weight"},
       by([](OwnWriter& w) {
         w.queries_keys_values = [own = w.queries_keys_values](const Tensor& packed) {
           std::vector<Tensor> p = own(packed);
           p[2] = detach(p[2]);
           return p;
         };
       })},
  };
}

std::vector<Mistake> loss_mistakes() {
  return {
      {{"a mean over padding, too", "forward",
        "a factor of the loss: the loss and all 30 gradients of the second model are 0.708333 times the first model's; "
        "17 of 24 targets are not -100",
        ""},
       mean_over_padding},
      {{"a sum over the time", "forward",
        "a factor of the loss: the loss and all 30 gradients of the second model are 6 times", ""},
       losses([](nn::Module& model, const Examples& batch, const Tensor&) {
         const Tensor l = cross_entropy(model(batch.inputs), batch.targets, {.reduction = Reduction::none});
         return mean(sum(l, {1}));
       })},
      {{"targets shifted twice", "forward", "", "`cross_entropy` [] after head is the first"}, shifted_twice},
      {{"label smoothing", "forward", "", "`cross_entropy` [] after head is the first"},
       losses([](nn::Module& model, const Examples& batch, const Tensor&) {
         return cross_entropy(model(batch.inputs), batch.targets, {.label_smoothing = 0.1});
       })},
      {{"softmax twice", "forward", "", "`cross_entropy` [] after head is the first"},
       losses([](nn::Module& model, const Examples& batch, const Tensor&) {
         return cross_entropy(softmax(model(batch.inputs)), batch.targets);
       })},
      {{"L2 in the loss", "forward", "", "look at the terms that it adds to the loss"},
       losses([](nn::Module& model, const Examples&, Tensor l) {
         for (const Tensor& w : model.parameters()) l = l + sum(square(w)) * 0.005;
         return l;
       })},
      {{"gradients that are not unscaled", "backward",  // the loss is scaled for f16
        "a factor in the backward: all 30 gradients of the second model are 1024 times", ""},
       losses([](nn::Module&, const Examples&, const Tensor& l) {
         on_grad(l, [](const Tensor& g) { return g * 1024.0; });
         return l;
       })},
      {{"the padding row is trained", "backward", "", "=tokens.weight"}, trained_padding_row},
      {{"a weight that is detached", "backward", "", "in the second model no gradient reaches head.weight (the loss"},
       by([](OwnWriter& w) {
         w.logits = [&w](const Tensor& x) {
           return matmul(w.normalize(x, w.norm), transpose(detach(w.head.weight), 0, 1)) + w.head.bias;
         };
       })},
      {{"a tied head that is detached", "backward", "", "=tokens.weight"},
       both(tied,
            [](OwnWriter& w) {
              w.logits = [&w](const Tensor& x) {
                return matmul(w.normalize(x, w.norm), transpose(detach(w.tokens.weight), 0, 1)) + w.head.bias;
              };
            })},
  };
}

}  // namespace isonorm::unseen
