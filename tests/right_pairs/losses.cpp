// Losses: fused and composed, summed, in parts, of a probability, of a normal distribution.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

Make classifier(bool composed, const Net::Loss& loss) {
  const Shapes shapes = {{"w1", {16, 8}}, {"b1", {16}}, {"g1", {16}}, {"t1", {16}}, {"w2", {4, 16}}, {"b2", {4}}};
  const Make made = net(shapes, [=](Net& m, const Tensor& x) {
    const Tensor h = gelu(linear(x, m["w1"], m["b1"]));
    return linear(composed ? composed_layer_norm(h, m["g1"], m["t1"]) : layer_norm(h, m["g1"], m["t1"]), m["w2"],
                  m["b2"]);
  });
  return with_loss(made, loss);
}

Tensor fused_loss(Net& m, const Examples& batch) { return cross_entropy(m(batch.inputs), batch.targets); }
Tensor gathered_loss(Net& m, const Examples& batch) {
  return neg(mean(gather(log_softmax(m(batch.inputs), -1), -1, unsqueeze(batch.targets, -1))));
}
// Logits from which nothing was subtracted.
Tensor written_loss(Net& m, const Examples& batch) {
  const Tensor logits = m(batch.inputs), right = gather(logits, -1, unsqueeze(batch.targets, -1));
  return mean(log(sum(exp(logits), {-1})) - squeeze(right, -1));
}
Tensor summed_loss(Net& m, const Examples& batch) {
  return sum(cross_entropy(m(batch.inputs), batch.targets, {.reduction = Reduction::none}));
}
Tensor loss_in_parts(Net& m, const Examples& batch) {
  Tensor total = zeros({}, {m.dtype()});
  for (int64_t part = 0; part < 4; ++part) {
    const Examples rows = batch.rows(3 * part, 3);
    total = total + cross_entropy(m(rows.inputs), rows.targets) / 4.0;
  }
  return total;
}

Make two_tanh_layers(bool composed) {
  return net({{"w1", {16, 8}}, {"b1", {16}}, {"w2", {1, 16}}}, [=](Net& m, const Tensor& x) {
    if (!composed) return linear(tanh(linear(x, m["w1"], m["b1"])), m["w2"]);
    const Tensor h = tanh(matmul(x, transpose(m["w1"], 0, 1)) + m["b1"]);
    return sum(h * squeeze(m["w2"], 0), {-1}, true);
  });
}

Tensor logit_loss(Net& m, const Examples& batch) {
  return binary_cross_entropy_with_logits(m(batch.inputs), gt(batch.targets, 0.0).to(m.dtype()));
}
Tensor probability_loss(Net& m, const Examples& batch) {
  const Tensor p = sigmoid(m(batch.inputs)), t = gt(batch.targets, 0.0).to(m.dtype());
  return neg(mean(t * log(p) + (1.0 - t) * log(1.0 - p)));
}

// The negative log-likelihood of a normal distribution whose deviation is a parameter.
Make normal_likelihood(bool composed) {
  const Make made = net({{"w", {1, 8}}, {"sigma", {1}}}, [](Net& m, const Tensor& x) { return linear(x, m["w"]); });
  return with_loss(with_value(made, "sigma", 0.7), [=](Net& m, const Examples& batch) {
    const Tensor error = m(batch.inputs) - batch.targets, sigma = m["sigma"];
    if (composed) return mean(square(error / sigma) * 0.5 + log(sigma));
    return mean(square(error)) / square(sigma) * 0.5 + sum(log(sigma));
  });
}

}  // namespace

RightPairs loss_pairs() {
  const Data data = rows({12, 8}, 4);
  const auto pair = [&](const char* name, const Make& first, const Make& second, const Data& batches) -> RightPair {
    return {name, first, second, batches, loss_of_net};
  };
  const RightPair values = {"regression, composed", two_tanh_layers(false), two_tanh_layers(true),
                            regression({10, 8}, {10, 1}), squared_error};
  RightPair large = values;
  large.name = "regression of targets of 1e6";
  // A deviation is positive: the points keep its sign.
  const RightPair deviation = pair("likelihood with a learned deviation", normal_likelihood(false),
                                   normal_likelihood(true), regression({6, 8}, {6, 1}));
  RightPair near = deviation;
  near.name += ", weights perturbed";
  near.options.perturb = 0.5;
  large.data = changed(values.data, [](const Examples& e) { return Examples{e.inputs, e.targets * 1e6}; });
  // Trained until a loss of 3e-4 is the difference of logits near 5.
  const RightPair written = pair("cross-entropy written out, full batch", classifier(false, fused_loss),
                                 classifier(false, written_loss), one_batch(data));
  const RightPair learned =
      pair("cross-entropy from gathered log-probabilities, batch of one that repeats", classifier(false, fused_loss),
           classifier(false, gathered_loss), one_batch(rows({1, 8}, 4)));
  return {
      trained(written, "AdamW at 1e-1", adamw(0.1)),
      trained(learned, "AdamW at 3e-2", adamw(3e-2)),
      trained(pair("cross-entropy from gathered log-probabilities", classifier(false, fused_loss),
                   classifier(false, gathered_loss), data),
              "AdamW", adamw(1e-2)),
      trained(pair("summed loss", classifier(false, summed_loss), classifier(true, summed_loss), data), "AdamW",
              adamw(1e-2)),
      trained(pair("loss in four parts", classifier(false, fused_loss), classifier(false, loss_in_parts), data),
              "AdamW", adamw(1e-2)),
      pair("binary cross-entropy, of logits and of probabilities", with_loss(two_tanh_layers(false), logit_loss),
           with_loss(two_tanh_layers(false), probability_loss), regression({10, 8}, {10, 1})),
      near,
      trained(deviation, "AdamW", adamw(1e-2)),
      large,
      trained(values, "AdamW", adamw(1e-3)),
  };
}

}  // namespace isonorm::right_pairs
