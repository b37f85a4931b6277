// Hooks of modules, compared with formulas and with gradients of the same function without hooks.
#include <map>

#include "nn/gpt.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// x + fc(x), whose input has two uses.
struct Skip : Module {
  Linear& fc = add("fc", Linear(3, 3));
  Tensor forward(const Tensor& x) override { return x + fc(x); }
};

ForwardHook times(double factor) {
  return [factor](const Module&, const Tensor&, const Tensor& y) { return y * factor; };
}

}  // namespace

TEST_CASE("forward hooks see input and output, replace the output in their order, and can be removed") {
  Skip net;
  net.to(DType::f64);
  const Tensor x = randn({2, 3}, kF64), fc = linear(x, net.fc.weight, net.fc.bias);
  CHECK_FALSE(net.fc.has_hooks());
  Tensor input, output;
  std::string name;
  ModuleHookHandle first = net.fc.on_forward([&](const Module& m, const Tensor& in, const Tensor& y) {
    input = in, output = y, name = m.name();
    return y;
  });
  ModuleHookHandle twice = net.fc.on_forward(times(2));
  ModuleHookHandle more = net.fc.on_forward([](const Module&, const Tensor&, const Tensor& y) { return y + 1; });
  check_close(net(x), x + (fc * 2 + 1), 0);
  CHECK(input.handle() == x.handle());
  check_close(output, fc, 0);
  CHECK(name == "fc");
  twice.remove();
  twice.remove();
  check_close(net(x), x + (fc + 1), 0);
  first.remove(), more.remove();
  CHECK_FALSE(net.fc.has_hooks());
  check_close(net(x), x + fc, 0);
  ModuleHookHandle once;  // a hook may remove itself
  once = net.fc.on_forward([&](const Module&, const Tensor&, const Tensor& y) { return once.remove(), y * 0; });
  check_close(net(x), x, 0);
  check_close(net(x), x + fc, 0);
  CHECK_THROWS_WITH(net.on_forward({}), "on_forward: the hook is empty");
  CHECK_THROWS_WITH(net.on_backward({}), "on_backward: the hook is empty");
  ModuleHookHandle().remove();
}

TEST_CASE("hooks go with a module into its parent, and not into a clone") {
  Linear fc(3, 3);
  fc.to(DType::f64);
  const Tensor x = randn({2, 3}, kF64), plain = fc(x);
  ModuleHookHandle twice = fc.on_forward(times(2));
  struct Holder : Module {
    Linear& fc;
    explicit Holder(Linear&& layer) : fc(add("fc", std::move(layer))) {}
    Tensor forward(const Tensor& x) override { return fc(x); }
  };
  auto holder = std::make_unique<Holder>(std::move(fc));
  check_close((*holder)(x), plain * 2, 0);
  check_close(clone(holder->fc)(x), plain, 0);
  twice.remove();
  check_close((*holder)(x), plain, 0);
  twice = holder->fc.on_forward(times(3));
  holder.reset();
  twice.remove();  // the module is gone
}

TEST_CASE("backward hooks see one call's gradients: of its output, and through its own use of the input") {
  Skip net;
  net.to(DType::f64);
  const Tensor x = require_grad(randn({2, 3}, kF64)), c = randn({2, 3}, kF64);
  const Tensor w = detach(net.fc.weight);
  backward(sum(net(x) * c));
  const Tensor plain = x.grad(), plain_w = net.fc.weight.grad();
  // d/dx sum(c (x + x W^T + b)) = c + c W, of which the layer's use gives c W.
  Tensor seen_in, seen_out;
  int calls = 0;
  ModuleHookHandle look = net.fc.on_backward([&](const Module& m, const Tensor& in, const Tensor& out) {
    CHECK(m.name() == "fc");
    seen_in = in, seen_out = out, ++calls;
    return in;
  });
  net.zero_grad(), set_grad(x, {});
  backward(sum(net(x) * c));
  CHECK(calls == 1);
  check_close(seen_out, c, 0);
  check_close(seen_in, matmul(c, w), 8 * 0x1p-52);
  check_close(x.grad(), plain, 0);
  check_close(net.fc.weight.grad(), plain_w, 0);
  // Two calls in one graph are told apart.
  net.zero_grad(), set_grad(x, {});
  std::vector<Tensor> outs;
  look.remove();
  look =
      net.fc.on_backward([&](const Module&, const Tensor& in, const Tensor& out) { return outs.push_back(out), in; });
  const Tensor y1 = net.fc(x), y2 = net.fc(x);
  backward(sum(y1 * c) + sum(y2 * c * 3));
  REQUIRE(outs.size() == 2);
  check_close(outs[0] + outs[1], c * 4, 8 * 0x1p-52);
  look.remove();
  // The returned tensor replaces the gradient: c + 5 (c W).
  ModuleHookHandle five = net.fc.on_backward([](const Module&, const Tensor& in, const Tensor&) { return in * 5; });
  net.zero_grad(), set_grad(x, {});
  backward(sum(net(x) * c));
  check_close(x.grad(), c + matmul(c, w) * 5, 64 * 0x1p-52);
  check_close(net.fc.weight.grad(), plain_w, 0);
  // An input without a gradient has none to replace, and the hook is called all the same.
  calls = 0;
  five.remove();
  look = net.fc.on_backward([&](const Module&, const Tensor& in, const Tensor& out) {
    CHECK_FALSE(in.defined());
    check_close(out, c, 0);
    return ++calls, in;
  });
  backward(sum(net(detach(x)) * c));
  CHECK(calls == 1);
  const NoGrad no_grad;
  net(x);
}

TEST_CASE("hooks on any layer of a Transformer are called, and change nothing if they only look") {
  for (const bool swiglu : {false, true}) {
    manual_seed(4);
    Gpt gpt({.vocab = 7,
             .context = 5,
             .transformer = {.width = 8,
                             .depth = 2,
                             .heads = 2,
                             .activation = swiglu ? Activation::swiglu : Activation::gelu,
                             .qk_norm = NormKind::layer,
                             .affine = true}});
    gpt.to(DType::f64);
    const Tensor ids = randint(0, 7, {2, 5});
    const Tensor c = randn({2, 5, 7}, kF64);
    const auto gradients = [&] {
      gpt.zero_grad();
      const Tensor y = gpt(ids);
      backward(sum(y * c));
      std::vector<Tensor> all = {detach(y)};
      for (const NamedParameter& p : gpt.named_parameters())
        if (p.blind_end == 0) all.push_back(p.tensor.grad());  // the gradient of k_norm.bias is rounding alone
      return all;
    };
    const std::vector<Tensor> plain = gradients();
    std::map<std::string, int> forwards, backwards;
    for (const auto& [path, m] : gpt.named_modules()) {
      if (dynamic_cast<ModuleList<TransformerBlock>*>(m)) continue;  // it is run by its Residual
      m->on_forward([&, path = path](const Module&, const Tensor& in, const Tensor& y) {
        if (path.ends_with("norm1") || path.ends_with("norm2")) CHECK(in.shape() == Dims{2, 5, 8});
        return ++forwards[path], y;
      });
      m->on_backward(
          [&, path = path](const Module&, const Tensor& in, const Tensor&) { return ++backwards[path], in; });
    }
    const std::vector<Tensor> hooked = gradients();
    for (size_t i = 0; i < plain.size(); ++i) check_close(hooked[i], plain[i], 1e-12);
    size_t layers = 0;
    for (const auto& [path, m] : gpt.named_modules()) {
      if (dynamic_cast<ModuleList<TransformerBlock>*>(m)) continue;
      INFO(path);
      if (path == "position") continue;  // first(n) is a call without a tensor
      ++layers;
      CHECK(forwards[path] == 1);
      CHECK(backwards[path] == 1);
    }
    CHECK(layers == (swiglu ? 28 : 26));
  }
}

TEST_CASE("a hook on a block sees the residual stream, and its result replaces the stream") {
  Gpt gpt({.vocab = 7, .context = 5, .transformer = {.width = 8, .depth = 2, .heads = 2}});
  gpt.to(DType::f64);
  const Tensor ids = randint(0, 7, {2, 5});
  const TensorMap state = gpt.state_dict();
  std::map<std::string, Module*> modules;
  for (const auto& [path, m] : gpt.named_modules()) modules[path] = m;
  Tensor entered, between, left;
  modules.at("blocks.0")->on_forward([&](const Module&, const Tensor& in, const Tensor& y) {
    return entered = in, between = y;
  });
  ModuleHookHandle second = modules.at("blocks.1")->on_forward([&](const Module&, const Tensor& in, const Tensor& y) {
    check_close(in, between, 0);
    return left = y;
  });
  gpt(ids);
  check_close(entered, embedding(state.at("token.weight"), ids) + narrow(state.at("position.weight"), 0, 0, 5), 0);
  CHECK(largest(left - between) > 1e-3);
  second.remove();
  modules.at("blocks.1")->on_forward([](const Module&, const Tensor& in, const Tensor&) { return in; });  // skips it
  LayerNorm norm(8, {.affine = false});
  check_close(gpt(ids), linear(norm(between), state.at("head.weight"), state.at("head.bias")), 1e-12);
}

TEST_CASE("a hook on one layer of an MLP is called, though both layers and GELU are one op without it") {
  const Tensor x = randn({4, 6}, {DType::f64});
  for (const char* name : {"fc1", "fc2"}) {
    INFO(name);
    FeedForward mlp(6, {.hidden = 9});
    mlp.to(DType::f64);
    const Tensor plain = mlp(x);
    int calls = 0;
    for (const auto& child : mlp.children())
      if (child->name() == name)
        child->on_forward([&](const Module&, const Tensor&, const Tensor& y) { return ++calls, y; });
    check_close(mlp(x), plain, 64 * 0x1p-52);
    CHECK(calls == 1);
  }
}
