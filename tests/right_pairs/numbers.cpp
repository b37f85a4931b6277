// Numbers of unusual size: large and small weights, rows with a constant far above their spread, saturated logits.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

Tensor normed(const Tensor& x, bool composed) {
  const Tensor one = ones({x.size(-1)}, {x.dtype()});
  return composed ? composed_layer_norm(x, one, one * 0.0) : layer_norm(x);
}

Make scaled_weights(bool composed, double deviation) {
  return net(
      {{"w", {16, 8}}, {"g", {16}}, {"t", {16}}, {"head", {4, 16}}},
      [=](Net& m, const Tensor& x) {
        const Tensor h = linear(x, m["w"]);
        return linear(composed ? composed_layer_norm(h, m["g"], m["t"]) : layer_norm(h, m["g"], m["t"]), m["head"]);
      },
      deviation);
}

// A norm of rows of the given spread around a constant.
Make offset_rows(bool composed, double spread, double constant) {
  return net({{"w", {8, 8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    return linear(normed(linear(x, m["w"]) * spread + constant, composed), m["head"]);
  });
}
// The same if the constant is a bias.
Make offset_bias(bool composed, double constant) {
  const Make made = net({{"w", {8, 8}}, {"b", {8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    return linear(normed(linear(x, m["w"]) + m["b"], composed), m["head"]);
  });
  return with_value(made, "b", constant);
}

// Rows 50 + 1e-3 z. In f32, where ulps of 50 are 0.4 % of that spread, an ulp of a weight moves an entry by nothing or
// by 0.4 %, and controls measure nothing: 50 + 0.1 z.
Make far_rows(bool composed) {
  return [=](const Draw& draw) { return offset_rows(composed, draw.dtype == DType::f64 ? 1e-3 : 0.1, 50)(draw); };
}

// Inputs go into the norm directly.
Make normed_inputs(bool composed) {
  return net({{"w1", {16, 8}}, {"b1", {16}}, {"w2", {4, 16}}}, [=](Net& m, const Tensor& x) {
    return linear(normed(gelu(linear(x, m["w1"], m["b1"])), composed), m["w2"]);
  });
}

Data scaled(const Data& data, double factor, double constant) {
  return changed(data, [=](const Examples& e) { return Examples{e.inputs * factor + constant, e.targets}; });
}

}  // namespace

RightPairs numeric_pairs() {
  const Data data = rows({12, 8}, 4);
  RightPairs pairs;
  for (const double deviation : {1e6, 1e-6}) {
    const RightPair pair = {text("weights of ", deviation), scaled_weights(false, deviation),
                            scaled_weights(true, deviation), data};
    pairs.push_back(pair);
    pairs.push_back(trained(pair, "AdamW", adamw(1e-2)));
  }
  for (const double constant : {1.0, 10.0, 100.0, 1e3, 1e4}) {
    pairs.push_back({text("rows with a constant of ", constant, " times their spread"), offset_rows(false, 1, constant),
                     offset_rows(true, 1, constant), data});
    pairs.push_back({text("rows with a bias of ", constant, " times their spread"), offset_bias(false, constant),
                     offset_bias(true, constant), data});
  }
  const RightPair far = {"rows of 50 + 1e-3 z", far_rows(false), far_rows(true), data};
  pairs.push_back(trained(far, "AdamW", adamw(1e-2)));
  const Make net = normed_inputs(false), composed = normed_inputs(true);
  const RightPair saturated = {"saturated logits", net, composed, scaled(data, 300, 0)};
  pairs.push_back({"inputs of 1 + 1e-6 z", net, composed, scaled(data, 1e-6, 1)});
  pairs.push_back({"inputs of 101325 + 10 z", net, composed, scaled(data, 10, 101325)});
  pairs.push_back(saturated);
  pairs.push_back(trained(saturated, "AdamW", adamw(1e-2)));
  return pairs;
}

}  // namespace isonorm::right_pairs
