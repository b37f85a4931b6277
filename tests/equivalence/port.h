// A small language model in two versions: with the library's layers, and ported by hand with other ops. The port has a
// switch for every mistake that people make in ports; `bug` names the active one.
#pragma once

#include <set>
#include <string_view>

#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "equivalence/compare/compare.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "optim/optimizer.h"
#include "tests/equivalence/room.h"

namespace isonorm::test {

constexpr int64_t kPortWidth = 8, kPortHeads = 2, kPortTime = 5, kPortIds = 11, kPortBatch = 4;

// x itself, with the gradient changed to change(gradient).
inline Tensor with_backward(const Tensor& x, const std::function<Tensor(const Tensor&)>& change) {
  const Tensor y = detach(x) * 1.0;
  if (auto* node = track("with_backward", {&y}, {&x}))
    node->backward = [change](Flow& flow) { flow.give(0, change(flow.out())); };
  return y;
}

// f(x) with the gradient of g(x).
inline Tensor with_slope_of(const Tensor& x, Tensor (*f)(const Tensor&), Tensor (*g)(const Tensor&)) {
  const Tensor y = f(detach(x));
  if (auto* node = track("with_slope_of", {&y}, {&x}))
    node->backward = [g, at = detach(x)](Flow& flow) {
      const Recording recording;
      const Tensor again = require_grad(detached::clone(at)), value = g(again);
      flow.give(0, grad(value, {again}, flow.out())[0]);
    };
  return y;
}

struct Port : nn::Module {
  std::string_view bug;  // "": none
  bool own;              // written with single ops
  int calls = 0;

  nn::Parameter& tok = add_parameter("tok", randn({kPortIds, kPortWidth}) * 0.4);
  nn::Parameter& pos = add_parameter("pos", randn({kPortTime, kPortWidth}) * 0.4);
  nn::LayerNorm& ln1 = add("ln1", nn::LayerNorm(kPortWidth));
  nn::Linear& q = add("q", nn::Linear(kPortWidth, kPortWidth));
  nn::Linear& k = add("k", nn::Linear(kPortWidth, kPortWidth));
  nn::Linear& v = add("v", nn::Linear(kPortWidth, kPortWidth));
  nn::Linear& o = add("o", nn::Linear(kPortWidth, kPortWidth));
  nn::LayerNorm& ln2 = add("ln2", nn::LayerNorm(kPortWidth));
  nn::Linear& up = add("up", nn::Linear(kPortWidth, 12));
  nn::Linear& down = add("down", nn::Linear(12, kPortWidth));
  nn::LayerNorm& lnf = add("lnf", nn::LayerNorm(kPortWidth));

  Port(bool by_hand, std::string_view planted) : bug(planted), own(by_hand) { to(DType::f64); }

  bool is(std::string_view name) const { return bug == name; }
  // "ln1 eps" for the mistake "eps" of the norm ln1, "all eps" for "eps" in every norm.
  bool is(std::string_view layer, std::string_view name) const {
    return bug.ends_with(name) && bug.size() == name.size() + 4 && (bug.starts_with(layer) || bug.starts_with("all"));
  }

  Tensor map(nn::Linear& l, const Tensor& x, bool bias = true) const {
    if (!own) return l(x);
    const Tensor y = matmul(x, transpose(l.weight(), 0, 1));
    return bias ? y + l.bias() : y;
  }

  Tensor norm(nn::LayerNorm& l, std::string_view name, const Tensor& x) const {
    if (!own) return l(x);
    const double eps = is(name, "eps") ? 1e-6 : 1e-5;
    Tensor gain = l.weight(), bias = l.bias();
    if (is(name, "gain+1")) gain = gain + 1.0;
    if (is(name, "gain row")) gain = with_backward(gain, [](const Tensor& g) { return g * (1.0 / 20); });
    if (is(name, "no bias")) bias = zeros_like(bias);
    if (is(name, "twice")) gain = ln1.weight(), bias = ln1.bias();
    if (is(name, "no mean") || is(name, "no proj")) return norm_by_rule(x, gain, bias, is(name, "no mean"));
    const int axis = is(name, "over time") ? 1 : -1;
    const Tensor centre = is(name, "rms") ? zeros({1}, x.options()) : mean(x, {axis}, true);
    const Tensor c = x - (is(name, "mean cut") ? detach(centre) : centre);
    Tensor s = mean(square(c), {axis}, true);
    if (is(name, "unbiased")) s = s * (8.0 / 7);
    if (is(name, "var cut")) s = detach(s);
    const Tensor root = is(name, "eps out") ? sqrt(s) + eps : sqrt(s + eps);
    return c / root * gain + bias;
  }

  // A norm with its backward written out: dx = s (h - mean h - n mean(h n)), h = gain dy. Leaves out the first or the
  // second mean.
  static Tensor norm_by_rule(const Tensor& x, const Tensor& gain, const Tensor& bias, bool drops_mean) {
    const Tensor c = detach(x) - mean(detach(x), {-1}, true), s = rsqrt(mean(square(c), {-1}, true) + 1e-5), n = c * s;
    const Tensor y = n * detach(gain) + detach(bias);
    if (auto* node = track("norm_by_rule", {&y}, {&x, &gain, &bias}))
      node->backward = [=, g = detach(gain)](Flow& flow) {
        const Tensor h = flow.out() * g, of_h = mean(h, {-1}, true), of_hn = n * mean(h * n, {-1}, true);
        flow.give(0, s * (drops_mean ? h - of_hn : h - of_h));
        flow.give(1, flow.out() * n), flow.give(2, flow.out());
      };
    return y;
  }

  // [batch, time, width] -> [batch, heads, time, width / heads].
  Tensor heads(const Tensor& x) const {
    const Dims apart{x.size(0), x.size(1), kPortHeads, kPortWidth / kPortHeads};
    if (is("heads as they lie")) return reshape(x, {x.size(0), kPortHeads, x.size(1), kPortWidth / kPortHeads});
    return transpose(reshape(x, apart), 1, 2);
  }
  Tensor turned(const Tensor& x, bool query) const {  // [batch, heads, time, size]
    RotaryOptions r;
    if (is("rotary base")) r.base = 1000;
    if (is("rotary halves")) r.halves = true;
    if (is("rotary first") && query) r.first = 1;
    if (is("rotary of q alone") && !query) return x;
    Tensor t = transpose(x, 1, 2);
    if (is("rotary back")) return flip(transpose(rotary(flip(t, {1}), r), 1, 2), {2});
    if (is("rotary rule") && query) {
      const Tensor y = rotary(detach(t), r);
      if (auto* node = track("own_rotary", {&y}, {&t}))
        node->backward = [r](Flow& flow) { flow.give(0, rotary(flow.out(), r)); };
      return transpose(y, 1, 2);
    }
    return transpose(rotary(t, r), 1, 2);
  }

  Tensor probabilities(Tensor s) const {
    const int64_t t = s.size(-1);
    Tensor future = triu(ones({t, t}, s.options()), is("mask one ahead") ? 2 : 1);
    if (is("mask transposed")) future = transpose(future, 0, 1);
    if (is("mask value")) return softmax(s - future * 1e-9);
    if (is("mask times scores")) return softmax(s * (1.0 - future));
    if (is("mask after softmax")) return softmax(s) * (1.0 - future);
    if (!is("no mask")) s = masked_fill(s, ne(future, 0.0), -INFINITY);
    if (!own) return softmax(s);
    if (is("softmax over queries")) return softmax(masked_fill(s, isinf(s), -1e9), -2);
    if (is("softmax rule")) {
      const Tensor p = softmax(detach(s));
      if (auto* node = track("own_softmax", {&p}, {&s}))
        node->backward = [p](Flow& flow) { flow.give(0, p * flow.out()); };
      return p;
    }
    const Tensor e = exp(s - detach(amax(s, {-1}, true)));
    return e / sum(e, {-1}, true);
  }

  Tensor attention(const Tensor& x) {
    Tensor a = heads(map(q, x)), b = heads(map(k, x)), c = heads(map(is("v of k") ? k : v, x));
    if (is("q and k exchanged")) std::swap(a, b);
    a = turned(a, true), b = turned(b, false);
    if (is("rotary of v")) c = turned(c, false);
    const double size = kPortWidth / kPortHeads;
    const double scale = is("scale 1/d")        ? 1 / size
                         : is("no scale")       ? 1
                         : is("scale of width") ? 1 / std::sqrt(8)
                                                : 0.5;
    Tensor p = probabilities(matmul(a, transpose(b, -1, -2)) * scale);
    if (is("dropout in training") && training()) p = p * (2.0 * bernoulli(p.shape(), 0.5, p.options()));
    if (is("probabilities cut")) p = detach(p);
    if (is("v twice back")) c = with_backward(c, [](const Tensor& g) { return g * 2.0; });
    Tensor y = matmul(p, c);
    y = reshape(is("merged as they lie") ? y : transpose(y, 1, 2), {x.size(0), x.size(1), kPortWidth});
    y = map(o, y, !is("no bias of o"));
    return is("bias of o per head") ? y + o.bias() : y;
  }

  Tensor mlp(const Tensor& x) {
    Tensor h = map(up, x, !is("no bias of up"));
    if (is("clamped")) h = clamp(h, -1.5, 1.5);
    if (is("gelu rule"))
      h = with_slope_of(h, gelu, gelu_tanh);
    else if (!own)
      h = gelu(h);
    else
      h = is("tanh gelu")       ? gelu_tanh(h)
          : is("relu")          ? relu(h)
          : is("silu")          ? silu(h)
          : is("no activation") ? h
                                : h * (erf(h * std::sqrt(0.5)) + 1.0) * 0.5;
    return map(down, h);
  }

  Tensor rows(const Tensor& ids) {
    Tensor table = tok();
    if (is("padding row")) {
      Tensor kept = ones({kPortIds, 1}, table.options());
      kept.mutable_data<double>()[0] = 0;
      table = with_backward(table, [kept](const Tensor& g) { return g * kept; });
    }
    if (is("rows cut")) table = detach(table);
    if (is("rows twice")) table = with_backward(table, [](const Tensor& g) { return g * 2.0; });
    if (is("rows by frequency"))
      table = with_backward(table, [ids](const Tensor& g) {
        return g / reshape(clamp_min(sum(one_hot(reshape(ids, {ids.numel()}), kPortIds, DType::f64), {0}), 1),
                           {kPortIds, 1});
      });
    Tensor p = pos();
    if (is("positions shifted")) p = roll(p, {1}, {0});
    if (is("no positions")) p = p * 0.0;
    if (is("positions twice")) p = p * 2.0;
    if (is("last position") && ids.to_vector<int64_t>().back() == 4)
      p = p * (1.0 - 0.5 * one_hot(full({1}, 4, {DType::i64}), 5, DType::f64).reshape({5, 1}));
    return embedding(table, ids) * (is("no embedding scale") ? 1 : std::sqrt(8)) + p;
  }

  Tensor forward(const Tensor& ids) override {
    ++calls;
    Tensor x = rows(ids);
    if (is("third call") && calls == 3) x = x * 1.001;
    if (is("post norm")) {
      x = norm(ln1, "ln1", x + attention(x));
    } else {
      const Tensor y = attention(norm(ln1, "ln1", x));
      x = (is("residual cut") ? detach(x) : is("residual of norm") ? norm(ln1, "ln1", x) : x) + y;
    }
    const Tensor y = mlp(norm(ln2, "ln2", x));
    x = is("no residual") ? y : is("residual halved") ? x * 0.5 + y : is("residual twice") ? x + y * 2.0 : x + y;
    if (!is("no final norm")) x = norm(lnf, "lnf", x);
    const Tensor head = is("head cut") ? detach(tok()) : tok();
    if (own) return matmul(x, transpose(head, 0, 1));
    return linear(x, head);
  }

  Tensor loss(const Examples& batch) {
    const auto ce = [&](const Tensor& ids, const Tensor& targets, CrossEntropyOptions options = {}) {
      const Tensor logits = (*this)(ids);
      return cross_entropy(logits, targets, options);
    };
    const auto scaled = [](const Tensor& l, double by) { return l * by - detach(l) * (by - 1); };
    const Tensor &x = batch.inputs, &t = batch.targets;
    if (is("sum for mean")) return ce(x, t, {.reduction = Reduction::sum});
    if (is("mean of rows")) return ce(x, t) * double(kPortTime);
    if (is("smoothed")) return ce(x, t, {.label_smoothing = 0.1});
    if (is("shifted targets")) return ce(x, roll(t, {1}, {1}));
    if (is("gradient halved")) return scaled(ce(x, t), 0.5);
    if (is("gradient of late steps")) return scaled(ce(x, t), ++calls > 12 ? 1.5 : 1);
    if (is("penalty")) return ce(x, t) + sum(square(up.weight())) * 1e-3;
    if (is("penalty unseen")) return ce(x, t) + sum(detach(square(up.weight()))) * 1e-3;
    if (is("padding counted")) return ce(x, t);
    if (is("uneven parts")) {
      const auto part = [&](int64_t from, int64_t n) {
        return ce(narrow(x, 0, from, n), narrow(t, 0, from, n), {.ignore_index = 0});
      };
      return (part(0, 1) + part(1, 3)) * 0.5;
    }
    if (is("first part cut")) {
      const auto part = [&](int64_t from) { return ce(narrow(x, 0, from, 2), narrow(t, 0, from, 2)); };
      return (detach(part(0)) + part(2)) * 0.5;
    }
    return ce(x, t, {.ignore_index = 0});
  }
};

inline Tensor loss_of_port(nn::Module& m, const Examples& batch) { return dynamic_cast<Port&>(m).loss(batch); }

// Ids, and targets from 1 to 10. With `padding`, the first two targets of each row are 0.
inline equivalence::Batches port_batches(bool padding = false) {
  return [padding](int64_t point) {
    Generator g{7, static_cast<uint64_t>(point) << 20};
    const Tensor x = randint(0, kPortIds, {kPortBatch, kPortTime}, kCpu, g),
                 t = randint(1, kPortIds, {kPortBatch, kPortTime}, kCpu, g);
    if (padding)
      for (int64_t i = 0; i < kPortBatch; ++i)
        for (int64_t j = 0; j < i; ++j) t.mutable_data<int64_t>()[i * kPortTime + j] = 0;
    return Examples{x, t};
  };
}

}  // namespace isonorm::test
