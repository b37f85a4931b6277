#include "lab/probes/rounding_model.h"

#include <cmath>
#include <memory>

#include "isonorm.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

using nn::Activation;
using streams::Form;

Tensor rows_of(const Tensor& x) { return reshape(x, {-1, x.size(-1)}); }

// x as a separate node, so that a hook sees the gradient from one reader.
Tensor read_once(const Tensor& x, GradHook hook) {
  if (!x.defined() || !takes_gradient(x)) return x;
  const Tensor y = x * 1.0;
  on_grad(y, std::move(hook));
  return y;
}

}  // namespace

Rounding::Rounding(DType dtype, Generator generator)
    : eps_(epsilon(dtype)), inside_(dtype != DType::bf16), generator_(generator) {}

Tensor Rounding::error(const Tensor& of) {
  const NoGrad no_grad;
  const double range = kRoundingError * std::sqrt(12.0) * eps_;  // width of a uniform distribution
  return detach(of) * ((rand(of.shape(), of.options(), generator_) - 0.5) * range);
}

// The error of a sum of `terms` terms. squares: the sum of their squares.
Tensor Rounding::error_of_sum(const Tensor& sum, const Tensor& squares, int64_t terms) {
  const NoGrad no_grad;
  if (!inside_) return error(sum);
  return error(sqrt((square(sum) + squares) * (static_cast<double>(terms) / 3)));
}

Tensor Rounding::gradient_of(const Tensor& x) {
  return read_once(x, [this](const Tensor& g) { return g + error(g); });
}

Tensor Rounding::value(const Tensor& x) { return x + error(x); }

Tensor Rounding::linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor xx = square(detach(x)), ww = square(detach(weight)), bb = bias.defined() ? square(detach(bias)) : bias;
  const auto gg = std::make_shared<Tensor>();  // squares of the gradient of the result
  const Tensor x1 =
      read_once(x, [=, this](const Tensor& g) { return g + error_of_sum(g, matmul(*gg, ww), ww.size(0)); });
  const int64_t rows = rows_of(xx).size(0);
  const Tensor w1 = read_once(weight, [=, this](const Tensor& g) {
    return g + error_of_sum(g, matmul(transpose(rows_of(*gg), 0, 1), rows_of(xx)), rows);
  });
  const Tensor b1 =
      read_once(bias, [=, this](const Tensor& g) { return g + error_of_sum(g, sum(rows_of(*gg), {0}), rows); });
  const Tensor y = isonorm::linear(x1, w1, b1);
  if (takes_gradient(y))
    on_grad(y, [gg](const Tensor& g) {
      *gg = square(g);
      return g;
    });
  return y + error_of_sum(detach(y), isonorm::linear(xx, ww, bb), x.size(-1));
}

Tensor Rounding::row_sum(const Tensor& x) {
  const Tensor s = sum(x, {-1}, true);
  return inside_ ? s + error_of_sum(detach(s), sum(square(detach(x)), {-1}, true), x.size(-1)) : s;
}

RoundingModel::RoundingModel(const training::TrainingOptions& o, Form form, const nn::Module& raw, Rounding rounding)
    : options_(o), stream_(form, o.model.transformer().width), round_(rounding) {
  check(writes_out(o), "rounding model: a ", o.model.row().name, " with connections ",
        o.model.transformer().connection.name,
        " is not written out here with these options, expected a vit or a gpt with pre_ln, keys for every head, and "
        "positions that are learned or rotary");
  for (streams::NamedParameter p : streams::named_parameters(raw)) {
    const Tensor leaf = empty_like(p.tensor);
    copy_into(leaf, detach(p.tensor));
    p.tensor = require_grad(leaf);
    raw_[p.name] = leaf;
    parameters_.push_back(p);
  }
}

bool RoundingModel::writes_out(const training::TrainingOptions& o) {
  const training::ModelRow* row = &o.model.row();
  const nn::TransformerOptions& t = o.model.transformer();
  return (row == &training::kVit || row == &training::kGpt) && t.activation != Activation::quick_gelu &&
         t.positions != nn::Positions::rotary_halves && t.positions != nn::Positions::alibi &&
         o.model.first_without(training::kInRounding).empty();
}

nn::Module& RoundingModel::model() {
  raise(ErrorKind::invalid, "rounding model: it has no modules", __FILE__, __LINE__);
}

void RoundingModel::differentiate(const training::Examples& batch) {
  const Tensor y = forward(batch.inputs), loss = cross_entropy(y, batch.targets, {.reduction = Reduction::sum});
  backward(loss);
  logits_ = detach(y);
  loss_ = loss.item();
  gradients_.clear();
  for (const streams::NamedParameter& p : parameters_) gradients_.push_back(p.tensor.grad());
}

Tensor RoundingModel::raw(const std::string& name) const {
  const auto at = raw_.find(name);
  return at == raw_.end() ? Tensor() : at->second;
}

// The writer's mapped weight. The identity does not round.
Tensor RoundingModel::written(const std::string& name, int dim) {
  const Tensor w = raw(name);
  if (!w.defined() || !stream_.centres()) return w;
  return round_.value(stream_.map_writer(round_.gradient_of(w), dim));
}

RoundingModel::Linear RoundingModel::writer(const std::string& name) {
  return {written(name + ".weight", 0), written(name + ".bias", 0)};
}

RoundingModel::Linear RoundingModel::reader_of(const Tensor& weight, const Tensor& bias, const std::string& norm) {
  const bool maps = stream_.stored_width() != stream_.width();
  if (!maps) return {weight, bias};
  Tensor a = round_.gradient_of(weight), b = bias;
  if (hands_over()) {
    const Tensor gain = round_.gradient_of(raw(norm + ".weight")), shift = round_.gradient_of(raw(norm + ".bias"));
    const Tensor moved = round_.inside(matmul(a, shift));
    b = round_.value(bias.defined() ? bias + moved : moved);
    a = round_.inside(a * gain);
  }
  return {round_.value(stream_.map_reader(a)), b};
}

RoundingModel::Linear RoundingModel::reader(const std::string& name, const std::string& norm) {
  return reader_of(raw(name + ".weight"), raw(name + ".bias"), norm);
}

Tensor RoundingModel::norm(const Tensor& rows, const std::string& name) {
  const double d = static_cast<double>(stream_.width());
  Tensor x = round_.gradient_of(rows);
  const NormKind kind = row_of(stream_.form()).norm;
  if (kind == NormKind::layer) x = round_.inside(x - round_.row_sum(x) / d);
  Tensor squares = round_.row_sum(square(x));
  if (kind == NormKind::crms) squares = squares + square(round_.row_sum(x));
  if (transformer().width == 2) kinks_.push_back(sqrt(detach(squares)));
  Tensor y = x * round_.inside(rsqrt(squares / d + transformer().eps));
  if (transformer().affine && !hands_over()) {
    y = round_.inside(y) * round_.gradient_of(raw(name + ".weight"));
    if (const Tensor bias = raw(name + ".bias"); bias.defined()) y = y + round_.gradient_of(bias);
  }
  return round_(y);
}

Tensor RoundingModel::attention(const Tensor& x, const std::string& block) {
  const Tensor packed = linear(x, reader(block + ".attn.qkv", block + ".norm1"));
  const int64_t batch = x.size(0), time = x.size(1), heads = transformer().heads, size = packed.size(-1) / (3 * heads);
  Tensor qkv = reshape(packed, {batch, time, 3 * heads, size});
  if (transformer().positions == nn::Positions::rotary)
    qkv = round_(rotary(round_.gradient_of(qkv), {.heads = 2 * heads}));
  qkv = permute(round_.gradient_of(qkv), {0, 2, 1, 3});
  const Tensor q = narrow(qkv, 1, 0, heads), k = narrow(qkv, 1, heads, heads), v = narrow(qkv, 1, 2 * heads, heads);
  Tensor scores = round_.inside(matmul(q, transpose(k, -1, -2)) / std::sqrt(static_cast<double>(size)));
  if (options_.model.row().causal) {
    const Tensor positions = arange(time, {DType::i64, x.device()});
    const Tensor later = gt(unsqueeze(positions, 0), unsqueeze(positions, 1));
    scores = masked_fill(scores, later, -INFINITY);
  }
  const Tensor e = round_.inside(exp(scores - amax(detach(scores), {-1}, true)));
  const Tensor share = round_.inside(e * round_.inside(reciprocal(round_.inside(round_.row_sum(e)))));
  const Tensor y = round_(matmul(share, v));
  return linear(reshape(permute(y, {0, 2, 1, 3}), {batch, time, heads * size}), writer(block + ".attn.proj"));
}

Tensor RoundingModel::mlp(const Tensor& x, const std::string& block) {
  const std::string mlp = block + ".mlp", before = block + ".norm2";
  const Tensor h = linear(x, reader(mlp + ".fc1", before));
  const auto act = [&](const Tensor& z) {
    switch (transformer().activation) {
      case Activation::gelu:
        return gelu(z);
      case Activation::gelu_tanh:
        return gelu_tanh(z);
      case Activation::relu:
        return relu(z);
      default:
        return silu(z);
    }
  };
  if (transformer().activation == Activation::relu) kinks_.push_back(detach(h));
  Tensor a;
  if (transformer().activation == Activation::swiglu)
    a = round_(act(round_.gradient_of(linear(x, reader(mlp + ".gate", before))))) * round_.gradient_of(h);
  else
    a = act(round_.gradient_of(h));
  return linear(round_(a), writer(mlp + ".fc2"));
}

// The stream before the first block.
Tensor RoundingModel::tokens(const Tensor& inputs) {
  if (&options_.model.row() == &training::kGpt) {
    const Tensor rows = embedding(round_.gradient_of(written("token.weight", -1)), inputs);
    const Tensor positions = round_.gradient_of(written("position.weight", -1));
    return positions.defined()
               ? round_(rows + embedding(positions, arange(inputs.size(1), {DType::i64, inputs.device()})))
               : rows;
  }
  Tensor x = linear(patchify(inputs, options_.model.number("patch")), writer("patch"));
  if (const Tensor positions = round_.gradient_of(written("position", 1)); positions.defined())
    x = round_(x + positions);
  if (const Tensor cls = round_.gradient_of(written("cls", 0)); cls.defined())
    x = cat({expand(cls, {x.size(0), 1, stream_.stored_width()}), x}, 1);
  return x;
}

Tensor RoundingModel::forward(const Tensor& inputs) {
  Tensor x = tokens(inputs);
  for (int64_t b = 0; b < transformer().depth; ++b) {
    const std::string block = text("blocks.", b);
    x = round_(x + attention(norm(x, block + ".norm1"), block));
    x = round_(x + mlp(norm(x, block + ".norm2"), block));
  }
  if (&options_.model.row() == &training::kVit)
    x = options_.model.flag("mean_pool") ? round_(mean(x, {1})) : select(x, 1, 0);
  const Tensor rows = norm(x, "norm");
  return round_.gradient_of(
      linear(rows, options_.model.flag("tied") ? reader_of(raw("token.weight"), {}, "norm") : reader("head", "norm")));
}

}  // namespace isonorm::equivalence
