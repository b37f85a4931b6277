// More ways to write one layer: shared keys, ALiBi, gates, folded norms, unfolded convolutions, recurrent gates,
// targets and products.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

// [batch, time, heads size] -> [batch, heads, time, size]
Tensor heads_of(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
Tensor merged(const Tensor& x) { return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)}); }

// Four query heads share two key heads: by the op, and by repeated keys.
Make grouped_queries(bool repeated) {
  return net({{"qkv", {16, 8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    const Tensor packed = linear(x, m["qkv"]);
    if (!repeated) return linear(mean(packed_attention(packed, 4, {.causal = true}, 2), {1}), m["head"]);
    const std::vector<Tensor> parts = split(packed, {8, 4, 4}, -1);
    const Tensor k = repeat_interleave(heads_of(parts[1], 2), 2, 1), v = repeat_interleave(heads_of(parts[2], 2), 2, 1);
    const Tensor scores = matmul(heads_of(parts[0], 4), transpose(k, -1, -2)) / std::sqrt(2.0);
    const Tensor future = triu(ones({x.size(1), x.size(1)}, {DType::u8}), 1);
    return linear(mean(merged(matmul(softmax(masked_fill(scores, future, -INFINITY), -1), v)), {1}), m["head"]);
  });
}

// ALiBi as an additive mask, and as an exponential factor of the weights (2108.12409).
Make alibi(bool as_factor) {
  return net({{"qkv", {24, 8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    const int64_t time = x.size(1);
    const std::vector<Tensor> parts = chunk(linear(x, m["qkv"]), 3, -1);
    const Tensor at = arange(0, static_cast<double>(time), 1, {x.dtype()});
    const Tensor distance = unsqueeze(at, 1) - unsqueeze(at, 0), future = lt(distance, 0.0);
    const Tensor slopes = reshape(from_vector(std::vector<double>{0.25, 0.0625}, {2}).to(x.dtype()), {2, 1, 1});
    const Tensor q = heads_of(parts[0], 2), k = heads_of(parts[1], 2), v = heads_of(parts[2], 2);
    if (!as_factor) {
      const Tensor mask = masked_fill(neg(slopes * distance), expand(future, {2, time, time}), -INFINITY);
      return linear(mean(merged(scaled_dot_product_attention(q, k, v, {.mask = unsqueeze(mask, 0)})), {1}), m["head"]);
    }
    const Tensor factor = where(future, 0.0, exp(neg(slopes * distance)));
    const Tensor weights = exp(matmul(q, transpose(k, -1, -2)) / 2.0) * factor;
    return linear(mean(merged(matmul(weights / sum(weights, {-1}, true), v)), {1}), m["head"]);
  });
}

// SwiGLU with one projection for gate and value, or two.
Make merged_gate() {
  return net({{"both", {20, 8}}, {"down", {4, 10}}}, [](Net& m, const Tensor& x) {
    const std::vector<Tensor> parts = chunk(linear(x, m["both"]), 2, -1);
    return linear(silu(parts[0]) * parts[1], m["down"]);
  });
}
Make separate_gate() {
  return net({{"gate", {10, 8}}, {"up", {10, 8}}, {"down", {4, 10}}}, [](Net& m, const Tensor& x) {
    const Tensor gate = linear(x, m["gate"]);
    return linear(gate * sigmoid(gate) * linear(x, m["up"]), m["down"]);
  });
}

// Batch norm in eval after a linear layer: in two steps, and folded into the weight.
Make eval_batch_norm(bool folded) {
  return net({{"w", {16, 8}}, {"b", {16}}, {"g", {16}}, {"t", {16}}, {"head", {4, 16}}}, [=](Net& m, const Tensor& x) {
    const Tensor running_mean = linspace(-1, 1, 16, {x.dtype()}), running_var = linspace(0.5, 2, 16, {x.dtype()});
    const Tensor factor = m["g"] / sqrt(running_var + 1e-5);
    const Tensor y = folded ? linear(x, m["w"] * unsqueeze(factor, 1), (m["b"] - running_mean) * factor + m["t"])
                            : (linear(x, m["w"], m["b"]) - running_mean) * factor + m["t"];
    return linear(relu(y), m["head"]);
  });
}

// A convolution of 3 x 3 by the op, and as a sum of nine shifted products.
Make convolution_of_nine(bool shifted) {
  return net({{"k", {4, 3, 3, 2}}, {"b", {4}}, {"head", {4, 4}}}, [=](Net& m, const Tensor& x) {
    Tensor y = conv2d(x, m["k"], m["b"]);
    if (shifted) {
      y = m["b"];
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j)
          y = y + linear(narrow(narrow(x, 1, i, 4), 2, j, 4), select(select(m["k"], 1, i), 1, j));
    }
    return linear(mean(relu(y), {1, 2}), m["head"]);
  });
}

// An LSTM with all gates in one product, and with a product for each gate.
const Shapes kFusedGates = {{"w", {24, 5}}, {"u", {24, 6}}, {"b", {24}}, {"head", {4, 6}}};
Shapes separate_gates() {
  Shapes shapes;
  for (const char* gate : {"i", "f", "o", "c"}) {  // no name begins with g
    shapes.push_back({text("w", gate), {6, 5}});
    shapes.push_back({text("u", gate), {6, 6}});
    shapes.push_back({text("b", gate), {6}});
  }
  shapes.push_back({"head", {4, 6}});
  return shapes;
}
Make lstm(bool fused) {
  return net(fused ? kFusedGates : separate_gates(), [=](Net& m, const Tensor& x) {
    Tensor h = zeros({x.size(0), 6}, {x.dtype()}), c = h;
    for (int64_t t = 0; t < x.size(1); ++t) {
      const Tensor in = select(x, 1, t);
      std::vector<Tensor> gates;
      if (fused)
        gates = chunk(linear(in, m["w"], m["b"]) + linear(h, m["u"]), 4, -1);
      else
        for (const char* gate : {"i", "f", "o", "c"})
          gates.push_back(linear(h, m[text("u", gate)]) + linear(in, m[text("w", gate)]) + m[text("b", gate)]);
      c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[3]);
      h = sigmoid(gates[2]) * tanh(c);
    }
    return linear(h, m["head"]);
  });
}
ParameterMap gates_map() {
  ParameterMap map;
  for (const char* part : {"w", "u", "b"})
    map.split(part, {text(part, "i"), text(part, "f"), text(part, "o"), text(part, "c")});
  return map;
}

Make hidden_layer(const std::function<Tensor(Net&, const Tensor& h)>& output) {
  return net({{"w1", {16, 8}}, {"b1", {16}}, {"w2", {4, 16}}, {"b2", {4}}},
             [=](Net& m, const Tensor& x) { return output(m, gelu(linear(x, m["w1"], m["b1"]))); });
}
Tensor plain_output(Net& m, const Tensor& h) { return linear(h, m["w2"], m["b2"]); }
Tensor einsum_output(Net& m, const Tensor& h) { return einsum("bi,oi->bo", {h, m["w2"]}) + m["b2"]; }
Tensor bias_column_output(Net& m, const Tensor& h) {
  const Tensor one = ones({h.size(0), 1}, {h.dtype()});
  return linear(cat({h, one}, 1), cat({m["w2"], unsqueeze(m["b2"], 1)}, 1));
}
Tensor halves_output(Net& m, const Tensor& h) {
  return linear(narrow(h, 1, 0, 7), narrow(m["w2"], 1, 0, 7)) + linear(narrow(h, 1, 7, 9), narrow(m["w2"], 1, 7, 9)) +
         m["b2"];
}

// Label smoothing by the op, and with target probabilities.
Tensor smoothed_loss(Net& m, const Examples& batch) {
  return cross_entropy(m(batch.inputs), batch.targets, {.label_smoothing = 0.1});
}
Tensor smoothed_targets_loss(Net& m, const Examples& batch) {
  const Tensor targets = one_hot(batch.targets, 4, m.dtype()) * 0.9 + 0.025;
  return neg(mean(sum(targets * log_softmax(m(batch.inputs), -1), {-1})));
}
// Group norm of two groups, and layer norm of halves.
Make two_groups(bool by_halves) {
  return net({{"w", {16, 8}}, {"g", {16}}, {"t", {16}}, {"head", {4, 16}}}, [=](Net& m, const Tensor& x) {
    const Tensor h = linear(x, m["w"]);
    if (!by_halves) return linear(group_norm(h, 2, m["g"], m["t"]), m["head"]);
    const Tensor halves = layer_norm(reshape(h, {h.size(0), 2, 8}));
    return linear(reshape(halves, h.shape()) * m["g"] + m["t"], m["head"]);
  });
}

// A weight-normalized layer: with the norm in the weight, and in the result.
Make weight_normalized(bool in_result) {
  return net({{"v", {16, 8}}, {"g", {16}}, {"head", {4, 16}}}, [=](Net& m, const Tensor& x) {
    const Tensor size = sqrt(sum(square(m["v"]), {1}));
    const Tensor y =
        in_result ? linear(x, m["v"]) * (m["g"] / size) : linear(x, m["v"] / unsqueeze(size, 1) * unsqueeze(m["g"], 1));
    return linear(relu(y), m["head"]);
  });
}

// A mixture of two experts: both computed and weighed, and chosen by a mask.
Make experts(bool masked) {
  return net(
      {{"router", {2, 8}}, {"first", {6, 8}}, {"second", {6, 8}}, {"head", {4, 6}}}, [=](Net& m, const Tensor& x) {
        const Tensor shares = softmax(linear(x, m["router"]), -1);
        const Tensor a = linear(x, m["first"]), b = linear(x, m["second"]);
        const Tensor first = narrow(shares, 1, 0, 1), second = narrow(shares, 1, 1, 1);
        const Tensor chosen = ge(first, second);
        const Tensor y = masked ? where(chosen, a * first, b * second)
                                : a * (first * chosen.to(x.dtype())) + b * (second * (1.0 - chosen.to(x.dtype())));
        return linear(y, m["head"]);
      });
}

// GELU's tanh form by the op, and by a sigmoid: (1 + tanh u) / 2 = sigmoid(2 u).
Make tanh_gelu(bool by_sigmoid) {
  return net({{"w1", {16, 8}}, {"b1", {16}}, {"w2", {4, 16}}}, [=](Net& m, const Tensor& x) {
    const Tensor h = linear(x, m["w1"], m["b1"]);
    const Tensor u = (h + h * h * h * 0.044715) * std::sqrt(2 / M_PI);
    return linear(by_sigmoid ? h * sigmoid(u * 2.0) : gelu_tanh(h), m["w2"]);
  });
}

// A residual net whose blocks are recomputed in the backward.
Make blocks(bool recomputed) {
  return net({{"w", {8, 8}}, {"u", {8, 8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    Tensor y = x;
    for (const char* name : {"w", "u"}) {
      const auto block = [&m, name](const Tensor& z) { return z + gelu(linear(layer_norm(z), m[name])); };
      y = recomputed ? checkpoint(block, y * 1.0) : block(y);
    }
    return linear(y, m["head"]);
  });
}

// Rotary positions by pairs of cosines and sines, and as complex products of halves.
Make rotary(bool as_matrix) {
  return net({{"q", {4, 8}}, {"k", {4, 8}}, {"head", {4, 5}}}, [=](Net& m, const Tensor& x) {
    const int64_t time = x.size(1);
    const Tensor at = reshape(arange(0, static_cast<double>(time), 1, {x.dtype()}), {time, 1});
    const Tensor rate = reshape(from_vector(std::vector<double>{1, 0.01}, {2}).to(x.dtype()), {1, 2});
    const Tensor angle = at * rate, c = cos(angle), s = sin(angle);
    const auto rotated = [&](const Tensor& y) {
      const Tensor a = narrow(y, -1, 0, 2), b = narrow(y, -1, 2, 2);
      if (!as_matrix) return cat({a * c - b * s, a * s + b * c}, -1);
      return y * cat({c, c}, -1) + cat({neg(b), a}, -1) * cat({s, s}, -1);
    };
    const Tensor scores = matmul(rotated(linear(x, m["q"])), transpose(rotated(linear(x, m["k"])), -1, -2));
    return linear(mean(softmax(scores, -1), {1}), m["head"]);
  });
}

// Dropout by the op, and as a product with its mask.
Make dropped(bool by_mask) {
  return net({{"w1", {16, 8}}, {"w2", {4, 16}}}, [=](Net& m, const Tensor& x) {
    const Tensor h = relu(linear(x, m["w1"]));
    return linear(by_mask ? h * dropout(ones_like(h), 0.5) : dropout(h, 0.5), m["w2"]);
  });
}

}  // namespace

RightPairs more_layer_pairs() {
  const Data data = rows({12, 8}, 4), sequences = rows({3, 5, 8}, 4);
  const auto with_output = [&](const char* name,
                               const std::function<Tensor(Net&, const Tensor&)>& output) -> RightPair {
    return {name, hidden_layer(plain_output), hidden_layer(output), data};
  };
  const RightPair grouped = {"grouped queries, by the op and by repeated keys", grouped_queries(false),
                             grouped_queries(true), sequences};
  const RightPair gate = {.name = "SwiGLU, merged and separate gate",
                          .first = merged_gate(),
                          .second = separate_gate(),
                          .data = data,
                          .map = ParameterMap().split("both", {"gate", "up"})};
  const RightPair joined_gate = {.name = "SwiGLU, separate and merged gate",
                                 .first = separate_gate(),
                                 .second = merged_gate(),
                                 .data = data,
                                 .map = ParameterMap().concat({"gate", "up"}, "both")};
  const RightPair gates = {.name = "LSTM, one product and four",
                           .first = lstm(true),
                           .second = lstm(false),
                           .data = rows({3, 6, 5}, 4),
                           .map = gates_map()};
  const RightPair smoothing = {"label smoothing, by the op and by targets",
                               with_loss(hidden_layer(plain_output), smoothed_loss),
                               with_loss(hidden_layer(plain_output), smoothed_targets_loss), data, loss_of_net};
  const RightPair batch_norm = {"batch norm in eval, folded", eval_batch_norm(false), eval_batch_norm(true), data};
  return {
      grouped,
      trained(grouped, "AdamW", adamw(1e-2)),
      {"ALiBi, as a mask and as a factor", alibi(false), alibi(true), sequences},
      gate,
      joined_gate,
      trained(gate, "AdamW", adamw(1e-2)),
      batch_norm,
      trained(batch_norm, "SGD", sgd(0.1)),
      {"convolution of 3 x 3 as nine products", convolution_of_nine(false), convolution_of_nine(true),
       rows({4, 6, 6, 2}, 4)},
      gates,
      trained(gates, "AdamW", adamw(1e-2)),
      smoothing,
      trained(smoothing, "AdamW", adamw(1e-2)),
      with_output("a product by einsum", einsum_output),
      with_output("a bias as a column of ones", bias_column_output),
      with_output("a product in two parts", halves_output),
      {"group norm and layer norm of halves", two_groups(false), two_groups(true), data},
      {"weight norm, in the weight and in the result", weight_normalized(false), weight_normalized(true), data},
      {"two experts, weighed and chosen", experts(false), experts(true), data},
      {"GELU by tanh and by sigmoid", tanh_gelu(false), tanh_gelu(true), data},
      {.name = "blocks recomputed in the backward", .first = blocks(false), .second = blocks(true), .data = data},
      {"rotary positions, in two forms", rotary(false), rotary(true), sequences},
      {.name = "dropout, by the op and by its mask", .first = dropped(false), .second = dropped(true), .data = data},
  };
}

}  // namespace isonorm::right_pairs
