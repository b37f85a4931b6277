// Norms: fused and composed, as another norm of centred rows, with a folded gain, of the batch.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

using Norm = std::function<Tensor(Net&, const Tensor&)>;

// linear, gelu, x + linear(norm(x)), linear.
Make residual_net(const Norm& norm) {
  const Shapes shapes = {{"w1", {16, 8}},  {"b1", {16}}, {"g1", {16}},    {"t1", {16}},
                         {"w2", {16, 16}}, {"b2", {16}}, {"w3", {4, 16}}, {"b3", {4}}};
  return net(shapes, [norm](Net& m, const Tensor& x) {
    const Tensor h = gelu(linear(x, m["w1"], m["b1"]));
    return linear(h + linear(norm(m, h), m["w2"], m["b2"]), m["w3"], m["b3"]);
  });
}

Tensor fused(Net& m, const Tensor& h) { return layer_norm(h, m["g1"], m["t1"]); }
Tensor composed(Net& m, const Tensor& h) { return composed_layer_norm(h, m["g1"], m["t1"]); }
Tensor centred_rms(Net& m, const Tensor& h) { return rms_norm(recentre(h, -1), m["g1"], m["t1"]); }
Tensor by_moments(Net& m, const Tensor& h) {
  const Tensor mu = mean(h, {-1}, true), variance = mean(square(h), {-1}, true) - square(mu);
  return (h - mu) * rsqrt(variance + 1e-5) * m["g1"] + m["t1"];
}

Make gain_net(const std::function<Tensor(Net&, const Tensor&)>& normed_linear) {
  return net({{"g", {8}}, {"w", {6, 8}}, {"wh", {4, 6}}},
             [=](Net& m, const Tensor& x) { return linear(relu(normed_linear(m, x)), m["wh"]); });
}

// The parameter takes no gradient.
Make with_frozen(const Make& make, const std::string& name) {
  return [=](const Draw& draw) {
    auto made = make(draw);
    require_grad(*made->find_parameter(name), false);
    return made;
  };
}

// Batch norm of the library, and written out with its running statistics.
class BatchNormNet : public nn::Module {
 public:
  BatchNormNet(bool written_out, bool training) : written_out_(written_out) {
    NoGrad no_grad;
    fill(norm_.running_mean, 0.3), fill(norm_.running_var, 1.7);
    train(training);
  }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor h = first_(x);
    return head_(relu(written_out_ ? normalized(h) : norm_(h)));
  }

 private:
  Tensor normalized(const Tensor& h) {
    const Tensor gain = norm_.weight(), bias = norm_.bias();
    if (!training()) return (h - norm_.running_mean) * (gain / sqrt(norm_.running_var + 1e-5)) + bias;
    const Tensor mu = mean(h, {0}, true), variance = mean(square(h - mu), {0}, true);
    NoGrad no_grad;
    const double n = static_cast<double>(h.size(0));
    copy_into(norm_.running_mean, norm_.running_mean * 0.9 + detach(squeeze(mu, 0)) * 0.1);
    copy_into(norm_.running_var, norm_.running_var * 0.9 + detach(squeeze(variance, 0)) * (0.1 * n / (n - 1)));
    const Recording recording;
    return (h - mu) / sqrt(variance + 1e-5) * gain + bias;
  }

  bool written_out_;
  nn::Linear& first_ = add("first", nn::Linear(8, 16));
  nn::BatchNorm& norm_ = add("norm", nn::BatchNorm(16));
  nn::Linear& head_ = add("head", nn::Linear(16, 4));
};

}  // namespace

RightPairs norm_pairs() {
  const Data data = rows({12, 8}, 4);
  const RightPair layer = {"layer norm, fused and composed", residual_net(fused), residual_net(composed), data};
  const RightPair rms = {"layer norm and RMSNorm of centred rows", residual_net(fused), residual_net(centred_rms),
                         data};
  const RightPair in_eval = {"batch norm in eval", module_of<BatchNormNet>(false, false),
                             module_of<BatchNormNet>(true, false), data};
  const RightPair in_training = {"batch norm in training", module_of<BatchNormNet>(false, true),
                                 module_of<BatchNormNet>(true, true), data};
  const Make gain = gain_net([](Net& m, const Tensor& x) { return linear(rms_norm(x, m["g"], {}), m["w"]); });
  const Make folded = gain_net([](Net& m, const Tensor& x) { return linear(rms_norm(x), m["w"] * m["g"]); });
  const Make without = net({{"w", {6, 8}}, {"wh", {4, 6}}},
                           [](Net& m, const Tensor& x) { return linear(relu(linear(rms_norm(x), m["w"])), m["wh"]); });
  RightPair ones = {"RMSNorm, a gain of ones that the map leaves out", with_value(gain, "g", 1), without,
                    rows({9, 8}, 4)};
  ones.map.leave_out("g");
  RightPair frozen = ones;
  frozen.name += ", frozen";
  frozen.first = with_frozen(ones.first, "g");

  RightPair single = layer;
  single.name += ", batch of one";
  single.data = rows({1, 8}, 4);
  RightPair repeated = single;
  repeated.name += " that repeats";
  repeated.data = one_batch(repeated.data);
  RightPair same_batch = layer;
  same_batch.name += ", full batch";
  same_batch.data = one_batch(data);
  return {
      layer,
      trained(layer, "AdamW", adamw(1e-2)),
      trained(layer, "SGD", sgd(0.1)),
      trained(layer, "clipped", adamw(1e-2), {.clip = 0.5}),
      trained(same_batch, "AdamW", adamw(1e-2)),
      single,
      trained(single, "AdamW", adamw(1e-2)),
      trained(repeated, "AdamW", adamw(1e-2)),
      trained(rms, "AdamW", adamw(1e-2)),
      {"layer norm and E[x^2] - E[x]^2", residual_net(fused), residual_net(by_moments), data},
      {"RMSNorm, gain folded in the forward", gain, folded, rows({9, 8}, 4)},
      ones,
      frozen,
      trained(in_eval, "AdamW", adamw(1e-2)),
      in_training,
      trained(in_training, "AdamW", adamw(1e-2)),
  };
}

}  // namespace isonorm::right_pairs
