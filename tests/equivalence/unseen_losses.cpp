// Mistakes in losses and in weights that a loss uses twice.
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_writer.h"

namespace isonorm::unseen {

namespace {

// The head is tied to the embedding table. The hand-written model detaches the table there.
struct TiedWriter : OwnWriter {
  TiedWriter() { head.weight = tokens.weight; }
};
struct DetachedHead : TiedWriter {
  Tensor logits(const Tensor& x) override {
    return matmul(normalize(x, norm), transpose(detach(tokens.weight), 0, 1)) + head.bias;
  }
};

// Padding targets (ids below 3) become -100. The hand-written loss divides by the number of all tokens.
Examples padded(int64_t point) {
  Examples e = sentences(point);
  Tensor targets = to(e.targets, DType::f64);
  targets = masked_fill(targets, targets < 3.0, -100);
  return {e.inputs, to(targets, DType::i64)};
}
Comparison mean_over_padding() {
  manual_seed(2);
  Writer a;
  OwnWriter b;
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
  const auto loss = [](nn::Module& model, const Examples& batch) -> Tensor {
    const Tensor logits = model(batch.inputs);
    const int64_t shift = dynamic_cast<OwnWriter*>(&model) ? 1 : 0, n = kTime - 1;
    return cross_entropy(narrow(logits, 1, 0, n), contiguous(narrow(batch.targets, 1, shift, n)));
  };
  return compare_gradients(a, b, {}, loss, sentences);
}

// The row for padding begins as zeros and gets no gradient; in the hand-written table it does.
Comparison trained_padding_row() {
  manual_seed(2);
  Writer a({.padding_idx = 0});
  OwnWriter b({.padding_idx = 0});
  return compare_gradients(a, b, {}, training::cross_entropy_of, sentences);
}

template <class Loss> Comparison compare_losses(const Loss& own_loss) {
  manual_seed(2);
  Writer a;
  OwnWriter b;
  const auto loss = [&](nn::Module& model, const Examples& batch) -> Tensor {
    const Tensor l = training::cross_entropy_of(model, batch);
    return dynamic_cast<OwnWriter*>(&model) ? own_loss(model, batch, l) : l;
  };
  return compare_gradients(a, b, {}, loss, sentences);
}

// The loss is scaled for f16, but the gradients are not unscaled.
Comparison gradients_not_unscaled() {
  return compare_losses([](nn::Module&, const Examples&, const Tensor& l) {
    on_grad(l, [](const Tensor& g) { return g * 1024.0; });
    return l;
  });
}
// L2 of all weights as a term of the loss.
Comparison l2_in_the_loss() {
  return compare_losses([](nn::Module& model, const Examples&, const Tensor& l) {
    Tensor sum_of_squares = l;
    for (const Tensor& w : model.parameters()) sum_of_squares = sum_of_squares + sum(square(w)) * 0.005;
    return sum_of_squares;
  });
}
Comparison label_smoothing() {
  return compare_losses([](nn::Module& model, const Examples& batch, const Tensor&) {
    return cross_entropy(model(batch.inputs), batch.targets, {.label_smoothing = 0.1});
  });
}
// The loss of a sequence is the sum over its tokens, not the mean.
Comparison sum_over_time() {
  return compare_losses([](nn::Module& model, const Examples& batch, const Tensor&) {
    const Tensor l = cross_entropy(model(batch.inputs), batch.targets, {.reduction = Reduction::none});
    return mean(sum(l, {1}));
  });
}
// Softmax before a cross-entropy of logits.
Comparison softmax_twice() {
  return compare_losses([](nn::Module& model, const Examples& batch, const Tensor&) {
    return cross_entropy(softmax(model(batch.inputs)), batch.targets);
  });
}

struct DetachedWeight : OwnWriter {
  Tensor logits(const Tensor& x) override {
    return matmul(normalize(x, norm), transpose(detach(head.weight), 0, 1)) + head.bias;
  }
};

}  // namespace

std::vector<Mistake> loss_mistakes() {
  return {
      {{"a mean over padding, too", "forward",
        "a factor of the loss: the loss and all 30 gradients of the second model are 0.708333 times the first model's; "
        "17 of 24 targets are not -100",
        ""},
       mean_over_padding},
      {{"a sum over the time", "forward",
        "a factor of the loss: the loss and all 30 gradients of the second model are 6 times", ""},
       sum_over_time},
      {{"targets shifted twice", "forward", "", "`cross_entropy` [] after head is the first"}, shifted_twice},
      {{"label smoothing", "forward", "", "`cross_entropy` [] after head is the first"}, label_smoothing},
      {{"softmax twice", "forward", "", "`cross_entropy` [] after head is the first"}, softmax_twice},
      {{"L2 in the loss", "forward", "", "look at the terms that it adds to the loss"}, l2_in_the_loss},
      {{"gradients that are not unscaled", "backward",
        "a factor in the backward: all 30 gradients of the second model are 1024 times", ""},
       gradients_not_unscaled},
      {{"the padding row is trained", "backward", "", "=tokens.weight"}, trained_padding_row},
      {{"a weight that is detached", "backward", "", "in the second model no gradient reaches head.weight (the loss"},
       compare_writers<DetachedWeight>},
      {{"a tied head that is detached", "backward", "", "=tokens.weight"}, compare_writers<DetachedHead, TiedWriter>},
  };
}

}  // namespace isonorm::unseen
