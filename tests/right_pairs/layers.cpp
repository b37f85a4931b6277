// Layers: linear maps associated differently, convolutions, embeddings, recurrence, dropout, checkpoints, shared and
// unused weights.
#include "tests/right_pairs/pair.h"

namespace isonorm::right_pairs {
namespace {

Make convolution(const std::function<Tensor(Net&, const Tensor&)>& convolve, const Dims& kernel = {6, 2, 2, 3}) {
  return net({{"k", kernel}, {"b", {6}}, {"head", {4, 6}}},
             [=](Net& m, const Tensor& x) { return linear(convolve(m, x), m["head"]); });
}
Tensor convolved(Net& m, const Tensor& x) { return mean(relu(conv2d(x, m["k"], m["b"], {.stride = 2})), {1, 2}); }
Tensor of_patches(Net& m, const Tensor& x) {
  return mean(relu(linear(patchify(x, 2), reshape(m["k"], {6, 12}), m["b"])), {1});
}

enum class Lookup { embedding, index, one_hot };

Tensor looked_up(const Tensor& table, const Tensor& ids, Lookup lookup) {
  if (lookup == Lookup::embedding) return embedding(table, ids);
  if (lookup == Lookup::one_hot) return matmul(one_hot(ids, table.size(0), table.dtype()), table);
  return reshape(index_select(table, 0, flatten(ids)), {ids.size(0), ids.size(1), table.size(1)});
}

Make tied(Lookup lookup) {
  return net({{"table", {50, 8}}, {"w", {8, 8}}, {"b", {8}}}, [=](Net& m, const Tensor& ids) {
    const Tensor h = tanh(linear(looked_up(m["table"], ids, lookup), m["w"], m["b"]));
    return lookup == Lookup::embedding ? linear(h, m["table"]) : matmul(h, transpose(m["table"], 0, 1));
  });
}
Make untied(Lookup lookup) {
  return net({{"table", {50, 8}}, {"w", {8, 8}}, {"b", {8}}, {"head", {50, 8}}}, [=](Net& m, const Tensor& ids) {
    return linear(tanh(linear(looked_up(m["table"], ids, lookup), m["w"], m["b"])), m["head"]);
  });
}

// nn::Gru, and its formula step by step.
class GruNet : public nn::Module {
 public:
  explicit GruNet(bool written_out) : written_out_(written_out) {}

 protected:
  Tensor forward(const Tensor& x) override { return head_(written_out_ ? last_state(x) : last_output(x)); }

 private:
  Tensor last_output(const Tensor& x) { return select(gru_(x).output, 1, x.size(1) - 1); }
  Tensor last_state(const Tensor& x) {
    std::map<std::string, Tensor> p;
    for (const nn::NamedParameter& named : gru_.named_parameters())
      for (const char* key : {"input.weight", "input.bias", "recurrent.weight", "recurrent.bias"})
        if (named.name.ends_with(key)) p[key] = named.tensor;
    Tensor h = zeros({x.size(0), 7}, {x.dtype()});
    for (int64_t t = 0; t < x.size(1); ++t) {
      const std::vector<Tensor> a = chunk(linear(select(x, 1, t), p["input.weight"], p["input.bias"]), 3, -1),
                                u = chunk(linear(h, p["recurrent.weight"], p["recurrent.bias"]), 3, -1);
      const Tensor reset = sigmoid(a[0] + u[0]), keep = sigmoid(a[1] + u[1]), next = tanh(a[2] + reset * u[2]);
      h = (1.0 - keep) * next + keep * h;
    }
    return h;
  }

  bool written_out_;
  nn::Gru& gru_ = add("gru", nn::Gru({.inputs = 5, .hidden = 7}));
  nn::Linear& head_ = add("head", nn::Linear(7, 4));
};

// A plain recurrent net, with two products a step, or one product with joined weights.
Make recurrent(bool joined) {
  return net(
      {{"w", {8, 8}}, {"u", {8, 5}}, {"head", {4, 8}}},
      [=](Net& m, const Tensor& x) {
        const Tensor weights = cat({m["u"], m["w"]}, 1);
        Tensor h = zeros({x.size(0), 8}, {x.dtype()});
        for (int64_t t = 0; t < x.size(1); ++t) {
          const Tensor step = select(x, 1, t);
          h = tanh(joined ? linear(cat({step, h}, 1), weights) : linear(step, m["u"]) + linear(h, m["w"]));
        }
        return linear(h, m["head"]);
      },
      0.6);
}

const Shapes kTwoLayers = {{"w1", {16, 8}}, {"b1", {16}}, {"w2", {16, 16}}, {"b2", {16}}, {"w3", {4, 16}}, {"b3", {4}}};

Tensor two_layers(Net& m, const Tensor& x) {
  const Tensor h = gelu(linear(x, m["w1"], m["b1"]));
  return linear(h + linear(layer_norm(h), m["w2"], m["b2"]), m["w3"], m["b3"]);
}
Tensor two_layers_associated(Net& m, const Tensor& x) {
  const Tensor h = gelu(matmul(x, transpose(m["w1"], 0, 1)) + m["b1"]);
  return linear(m["b2"] + h, m["w3"], m["b3"]) + linear(matmul(layer_norm(h), transpose(m["w2"], 0, 1)), m["w3"]);
}
Tensor two_layers_again(Net& m, const Tensor& x) {
  return checkpoint([&](const Tensor& y) { return two_layers(m, y); }, x);
}

Net::Forward with_dropout(bool composed) {
  return [=](Net& m, const Tensor& x) {
    const Tensor h = dropout(relu(linear(x, m["w1"], m["b1"])), 0.3), one = ones({16}, {x.dtype()});
    const Tensor normed = composed ? composed_layer_norm(h, one, one * 0.0) : layer_norm(h);
    return linear(h + linear(normed, m["w2"], m["b2"]), m["w3"], m["b3"]);
  };
}

Make shared_weights(bool composed) {
  return net({{"w", {8, 8}}, {"b", {8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    Tensor y = x;
    for (int layer = 0; layer < 4; ++layer)
      y = composed ? y + tanh(matmul(y, transpose(m["w"], 0, 1)) + m["b"]) : tanh(linear(y, m["w"], m["b"])) + y;
    return linear(y, m["head"]);
  });
}

Tensor silu_of(const Tensor& x, bool composed) { return composed ? x * sigmoid(x) : silu(x); }

Make with_unused(bool composed) {
  return net({{"w", {8, 8}}, {"unused", {3}}, {"head", {4, 8}}},
             [=](Net& m, const Tensor& x) { return linear(silu_of(linear(x, m["w"]), composed), m["head"]); });
}
Make with_zero_head(bool composed) {
  const Make made = net({{"w", {8, 8}}, {"b", {8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    return linear(silu_of(linear(x, m["w"], m["b"]), composed), m["head"]);
  });
  return with_value(with_value(made, "head", 0), "b", 0);
}
Make low_rank(bool merged) {
  const Make made = net({{"w", {8, 8}}, {"a", {2, 8}}, {"b", {8, 2}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    const Tensor y =
        merged ? linear(x, m["w"] + matmul(m["b"], m["a"])) : linear(x, m["w"]) + linear(linear(x, m["a"]), m["b"]);
    return linear(tanh(y), m["head"]);
  });
  return with_value(made, "b", 0);
}

Make two_inputs(bool joined) {
  return net({{"w", {4, 8}}, {"u", {4, 3}}}, [=](Net& m, const Tensor& x) {
    if (joined) return linear(x, cat({m["w"], m["u"]}, 1));
    return linear(narrow(x, 1, 0, 8), m["w"]) + linear(narrow(x, 1, 8, 3), m["u"]);
  });
}

Make linear_net(bool transposed) {
  return net({{"w", {8, 8}}, {"head", {4, 8}}}, [=](Net& m, const Tensor& x) {
    return linear(relu(transposed ? matmul(x, m["w"]) : linear(x, m["w"])), m["head"]);
  });
}

}  // namespace

RightPairs layer_pairs() {
  const Data data = rows({12, 8}, 4), ids = token_ids(50, {2, 4}), few_ids = token_ids(10, {2, 4});
  const RightPair unused_rows = {.name = "rows of a table that no id names",
                                 .first = untied(Lookup::embedding),
                                 .second = untied(Lookup::one_hot),
                                 .data = few_ids};
  const RightPair unused = {"a parameter without gradient", with_unused(false), with_unused(true), data};
  const RightPair lora = {"LoRA, beside the weight and merged", low_rank(false), low_rank(true), rows({6, 8}, 4)};
  const RightPair zero_head = {"a head of zeros", with_zero_head(false), with_zero_head(true), rows({6, 8}, 4)};
  return {
      {"sums associated differently", net(kTwoLayers, two_layers), net(kTwoLayers, two_layers_associated), data},
      {"convolution as a product with patches", convolution(convolved), convolution(of_patches), rows({4, 6, 6, 3}, 4)},
      {.name = "convolution and a linear layer of patches",
       .first = convolution(convolved),
       .second = convolution(of_patches, {6, 12}),
       .data = rows({4, 6, 6, 3}, 4),
       .map = ParameterMap().add("k", "k", {{.map = "reshape", .shape = {6, 12}}})},
      {.name = "tied table, by index", .first = tied(Lookup::embedding), .second = tied(Lookup::index), .data = ids},
      trained({"tied table, one-hot", tied(Lookup::embedding), tied(Lookup::one_hot), ids}, "AdamW", adamw(1e-2)),
      unused_rows,
      trained(unused_rows, "AdamW", adamw(1e-2)),
      trained({"GRU written out", module_of<GruNet>(false), module_of<GruNet>(true), rows({4, 6, 5}, 4)}, "AdamW",
              adamw(1e-2)),
      {"recurrent net of 100 steps, joined weights", recurrent(false), recurrent(true), rows({3, 100, 5}, 4)},
      {.name = "checkpoint",
       .first = net(kTwoLayers, two_layers),
       .second = net(kTwoLayers, two_layers_again),
       .data = data},
      trained({"dropout from the same generator", net(kTwoLayers, with_dropout(false)),
               net(kTwoLayers, with_dropout(true)), data},
              "AdamW", adamw(1e-2)),
      {"two inputs, joined weights", two_inputs(false), two_inputs(true), rows({6, 11}, 4)},
      trained({"weights shared over layers", shared_weights(false), shared_weights(true), data}, "AdamW", adamw(1e-2)),
      unused,
      trained(unused, "AdamW", adamw(1e-2)),
      trained(zero_head, "AdamW", adamw(1e-2)),
      trained(zero_head, "SGD", sgd(0.1)),
      lora,
      trained(lora, "AdamW", adamw(1e-2)),
      {.name = "transposed weight",
       .first = linear_net(false),
       .second = linear_net(true),
       .data = data,
       .map = ParameterMap().add("w", "w", {{"transpose"}})},
  };
}

}  // namespace isonorm::right_pairs
