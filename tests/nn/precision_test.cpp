// Mixed precision: products, norms and losses with f32 masters compared with sums in f64, whole models compared with
// copies in f64, and values that stay f32.
#include "autograd/fused/linear_cross_entropy.h"
#include "autograd/fused/mlp.h"
#include "autograd/ops/norm.h"
#include "autograd/rounded_masters.h"
#include "core/system/profile.h"
#include "nn/residual/all.h"
#include "streams/parametrize.h"
#include "optim/adam.h"
#include "streams/transformer.h"
#include "tests/support/nearest_bf16.h"
#include "tests/support/ops.h"
#include "training/steps/step.h"

using namespace isonorm;
using namespace isonorm::nn;
using streams::all_forms;
using streams::Form;
using Values = std::vector<double>;

namespace {

constexpr MixedPrecision kMixed{Precision::bf16, Precision::full}, kWithStream{Precision::bf16, Precision::bf16};
constexpr double kHalf = 0x1p-8;  // largest relative error of rounding to bf16

Tensor rounded(const Tensor& x) {
  Values v = x.to_vector<double>();
  for (double& e : v) e = test::nearest_bf16(e);
  return from_vector(v, x.shape());
}

// An f32 leaf, a bf16 leaf, and f64 copies of leaves.
Tensor master(const Dims& shape) { return require_grad(randn(shape)); }
Tensor rows_of(const Dims& shape) { return require_grad(randn(shape).to(DType::bf16)); }
std::vector<Tensor> in_f64(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> wide;
  for (const Tensor& t : leaves) wide.push_back(require_grad(detach(t).to(DType::f64)));
  return wide;
}

// Each entry of `found` may be off by `share` of the entry plus `of_terms` of the sum of its absolute terms.
void check_sums(const Tensor& found, const Tensor& exact_sums, const Values& terms, double share, double of_terms) {
  const Values f = found.to_vector<double>(), exact = exact_sums.to_vector<double>();
  REQUIRE(f.size() == exact.size());
  for (size_t i = 0; i < f.size(); ++i) {
    INFO(i << ": " << f[i] << " and " << exact[i]);
    CHECK(std::abs(f[i] - exact[i]) <= share * std::abs(exact[i]) + of_terms * terms[i]);
  }
}

TransformerOptions small(const MixedPrecision& precision) {
  return {.width = 16, .depth = 2, .heads = 2, .precision = precision};
}

Gpt small_gpt(const MixedPrecision& precision) {
  manual_seed(1);
  return Gpt({.vocab = 20, .context = 8, .transformer = small(precision)});
}

}  // namespace

TEST_CASE("a linear map of bf16 rows rounds its f32 weight once, and gives it an f32 gradient") {
  manual_seed(1);
  const int rows = 40, in = 24, out = 17;
  const std::vector<Tensor> leaves = {rows_of({rows, in}), master({out, in}), master({out})};
  const Tensor dy = randn({rows, out}).to(DType::bf16), y = linear(leaves[0], leaves[1], leaves[2]);
  const Tensor loss = sum(y.to(DType::f32) * dy.to(DType::f32));
  std::vector<Tensor> found = grad({&loss, 1}, leaves);
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i].dtype() == leaves[i].dtype());
  CHECK(y.dtype() == DType::bf16);
  found.push_back(y);
  // The same with the rounded numbers in f64; with abs, the sums of absolute terms.
  const auto sums = [&](Tensor (*part)(const Tensor&)) {
    std::vector<Tensor> wide;
    for (const Tensor& t : leaves) wide.push_back(require_grad(part(rounded(t))));
    const Tensor result = linear(wide[0], wide[1], wide[2]);
    const Tensor total = sum(result * part(rounded(dy)));
    std::vector<Tensor> all = grad({&total, 1}, wide);
    all.push_back(result);
    return all;
  };
  const std::vector<Tensor> exact = sums([](const Tensor& t) { return t; });
  const std::vector<Tensor> terms = sums(abs);
  const int lengths[] = {out, rows, rows, in};
  for (size_t i = 0; i < 4; ++i) {
    // Gradients of weight and bias are not rounded to bf16; their only error comes from f32 sums.
    const double share = i == 0 || i == 3 ? kHalf : 0;
    check_sums(found[i], exact[i], terms[i].to_vector<double>(), share, lengths[i] * 0x1p-24);
  }
}

TEST_CASE("mlp and linear_cross_entropy take bf16 rows and f32 weights: gradients and loss are f32") {
  manual_seed(2);
  const int rows = 12, in = 16, hidden = 24, classes = 9;
  const Tensor x = rows_of({rows, in}), w1 = master({hidden, in}), b1 = master({hidden}), w2 = master({in, hidden}),
               b2 = master({in}), w3 = master({classes, in}), b3 = master({classes});
  const Tensor targets = randint(0, classes, {rows});
  const Tensor y = mlp(x, w1, b1, w2, b2);
  CHECK(y.dtype() == DType::bf16);
  const Tensor loss = linear_cross_entropy(y, w3, b3, targets);
  CHECK(loss.dtype() == DType::f32);
  const std::vector<Tensor> parameters = {w1, b1, w2, b2, w3, b3};
  const std::vector<Tensor> g = grad({&loss, 1}, parameters);
  // The same in f64 throughout.
  const std::vector<Tensor> wide = in_f64({x, w1, b1, w2, b2, w3, b3});
  const Tensor exact = reference::linear_cross_entropy(reference::mlp(wide[0], wide[1], wide[2], wide[3], wide[4]),
                                                       wide[5], wide[6], targets);
  // Roundings on the way of a number: weights, hidden row, activation, result; weights and logits of the loss; as many
  // in the backward.
  CHECK(distance(g, grad({&exact, 1}, std::span(wide).subspan(1))) < 12 * kHalf);
  for (const Tensor& t : g) CHECK(t.dtype() == DType::f32);
  // Sums in f32 are not representable in bf16, except for one in 2^16.
  int of_bf16 = 0;
  const Values dw1 = g[0].to_vector<double>(), dw3 = g[4].to_vector<double>();
  for (const Values& v : {dw1, dw3})
    for (double e : v) of_bf16 += e == test::nearest_bf16(e);
  CHECK(of_bf16 < static_cast<int>(dw1.size() + dw3.size()) / 8);
}

TEST_CASE("a norm reads f32 and writes bf16, rounded once; the sum before it stays f32") {
  manual_seed(3);
  const int rows = 6, width = 32;
  for (NormKind kind : {NormKind::layer, NormKind::rms, NormKind::crms, NormKind::crms_isometric, NormKind::none})
    for (bool affine : {false, true}) {
      INFO(name_of(kind) << (affine ? " affine" : ""));
      const NormSpec spec{.kind = kind};
      const Tensor x = master({rows, width}), branch = rows_of({rows, width});
      const Tensor gain = affine ? master({width}) : Tensor(), bias = affine ? master({width}) : Tensor();
      const AddNorm r = add_norm(x, branch, spec, gain, bias, DType::bf16);
      CHECK(r.sum.dtype() == DType::f32);
      CHECK(r.normed.dtype() == DType::bf16);
      CHECK(same_bytes(r.sum, x + branch.to(DType::f32)));
      std::vector<Tensor> in = {x, branch};
      if (affine) in.insert(in.end(), {gain, bias});
      const std::vector<Tensor> wide = in_f64(in);
      const Tensor sum64 = wide[0] + wide[1],
                   y64 = normalize(sum64, spec, affine ? wide[2] : Tensor(), affine ? wide[3] : Tensor());
      check_sums(r.normed, y64, Values(rows * width, 4.0), kHalf, width * 0x1p-24);
      CHECK(same_bytes(normalize(r.sum, spec, gain, bias, DType::bf16), r.normed));

      const Tensor dy = randn({rows, width}).to(DType::bf16), dsum = randn({rows, width});
      const Tensor loss = sum((r.normed * dy).to(DType::f32)) * 0.0 + sum(r.sum * dsum) +
                          sum(r.normed.to(DType::f32) * dy.to(DType::f32));
      const Tensor loss64 = sum(y64 * dy.to(DType::f64)) + sum(sum64 * dsum.to(DType::f64));
      const std::vector<Tensor> g = grad({&loss, 1}, in), g64 = grad({&loss64, 1}, wide);
      for (size_t i = 0; i < g.size(); ++i) CHECK(g[i].dtype() == in[i].dtype());
      // The stored row without gain is off by kHalf, and so is the branch's gradient.
      CHECK(distance({g[0]}, {g64[0]}) < kHalf);
      CHECK(distance({g[1]}, {g64[1]}) < 2 * kHalf);
      for (size_t i = 2; i < g.size(); ++i) CHECK(distance({g[i]}, {g64[i]}) < width * 0x1p-22);
    }
}

TEST_CASE("whole models in mixed precision: losses and gradients within what their roundings explain") {
  const int depth = 2;
  const auto check_model = [&](Module& model, const Tensor& inputs, const Tensor& targets, Module& wide) {
    wide.to(DType::f64);
    for (const NamedParameter& p : wide.named_parameters()) copy_into(p.tensor, *model.state_dict().find(p.name));
    const Tensor logits = model(inputs);
    CHECK(logits.dtype() == DType::f32);
    const Tensor loss = cross_entropy(logits, targets);
    CHECK(loss.dtype() == DType::f32);
    const std::vector<Tensor> g = grad(loss, model.parameters());
    for (const Tensor& t : g) CHECK(t.dtype() == DType::f32);
    const Tensor in = is_floating(inputs.dtype()) ? inputs.to(DType::f64) : inputs;
    const Tensor exact_logits = wide(in), exact = cross_entropy(exact_logits, targets);
    CHECK(exact_logits.dtype() == DType::f64);
    // A number passes 7 roundings in attention (rows and weight of qkv, qkv itself, rows of the scores, weight of proj,
    // its result, the stream if it is bf16) and 7 in the MLP (swiglu's product is one more), then the final rows, the
    // head's weight and the logits. A gradient passes them again in the backward.
    const double off = distance({logits}, {exact_logits});
    CHECK(off < (15 * depth + 3) * kHalf);
    CHECK(off > 0x1p-13);  // and not as exact as f32
    const double back = distance(g, grad(exact, wide.parameters()));
    CHECK(back < 2 * (15 * depth + 3) * kHalf);
    CHECK(back > 0x1p-13);
    CHECK(std::abs(loss.item() - exact.item()) < (15 * depth + 3) * kHalf * exact.item());
  };
  for (Form form : all_forms())
    for (const MixedPrecision& precision : {kMixed, kWithStream}) {
      INFO(name_of(form) << ", stream " << name_of(precision.residual));
      manual_seed(1);
      TransformerOptions t{.width = 32, .depth = depth, .heads = 4, .precision = precision};
      const VitOptions images{.image = 12, .patch = 4, .transformer = t};
      Vit vit = streams::make<Vit>(images, {.form = form}), wide_vit = streams::make<Vit>(images, {.form = form});
      check_model(vit, randn({8, 12, 12, 1}), randint(0, 10, {8}), wide_vit);
      t.affine = true, t.activation = Activation::swiglu, t.positions = Positions::rotary;
      t.branch.layer_scale = 0.5;
      const GptOptions text{.vocab = 40, .context = 16, .tied = true, .transformer = t};
      const streams::StreamOptions stream{.form = form, .centre_readers = row_of(form).layer_norm_model()};
      Gpt gpt = streams::make<Gpt>(text, stream), wide_gpt = streams::make<Gpt>(text, stream);
      const Tensor ids = randint(0, 40, {4, 16}), targets = randint(0, 40, {4, 16});
      check_model(gpt, ids, targets, wide_gpt);
      const auto [w, b] = gpt.head();
      const Tensor fused = linear_cross_entropy(gpt.features(ids), w, b, targets);
      CHECK(fused.dtype() == DType::f32);
      CHECK(fused.item() == Approx(cross_entropy(gpt(ids), targets).item()).epsilon(kHalf));
    }
  manual_seed(1);
  TransformerOptions post{.width = 32, .depth = depth, .heads = 4, .affine = true, .precision = kMixed};
  post.connection = kPostLn;
  const VitOptions images{.image = 12, .patch = 4, .mean_pool = true, .transformer = post};
  Vit vit(images), wide(images);
  check_model(vit, randn({8, 12, 12, 1}), randint(0, 10, {8}), wide);
}

TEST_CASE("mixed precision: parameters, gradients and states stay f32; the stream's dtype is an option") {
  for (const MixedPrecision& precision : {kMixed, kWithStream}) {
    manual_seed(1);
    Gpt gpt = streams::make<Gpt>({.vocab = 20, .context = 8, .transformer = small(precision)});
    gpt.train();
    optim::AdamW adamw(gpt.parameters(), {.lr = 1e-3});
    const Tensor ids = randint(0, 20, {4, 8});
    int seen = 0;
    {
      const streams::StreamWatch watch(gpt, [&](const std::string&, const Tensor& rows) {
        CHECK(rows.dtype() == (precision.residual == Precision::bf16 ? DType::bf16 : DType::f32));
        ++seen;
      });
      backward(cross_entropy(gpt(ids), ids));
    }
    CHECK(seen == 5);
    const Tensor before = detach(gpt.parameters()[0]) + 0.0;
    adamw.step();
    for (const Tensor& p : gpt.parameters()) {
      CHECK(p.dtype() == DType::f32);
      CHECK(p.grad().dtype() == DType::f32);
    }
    for (const auto& [name, tensor] : adamw.state_dict())
      if (is_floating(tensor.dtype()) && tensor.numel() > 1) CHECK(tensor.dtype() == DType::f32);
    CHECK_FALSE(same_bytes(before, gpt.parameters()[0]));
  }
}

TEST_CASE("mixed precision is for f32 parameters: models of f64 or bf16 train as in full precision, bit by bit") {
  const Tensor ids = randint(0, 20, {4, 8});
  for (DType dtype : {DType::f64, DType::bf16}) {
    const auto logits = [&](const MixedPrecision& precision) {
      Gpt gpt = small_gpt(precision);
      gpt.to(dtype);
      return gpt(ids);
    };
    CHECK(same_bytes(logits(kWithStream), logits({})));
  }
}

TEST_CASE("mixed precision: prepared weights leave the bits, a clone has the same") {
  Gpt gpt = small_gpt(kMixed);
  const Tensor ids = randint(0, 20, {4, 8});
  const NoGrad no_grad;
  const Tensor logits = gpt(ids);
  Gpt copy = clone(gpt);
  CHECK(copy.options.transformer.precision == kMixed);
  CHECK(same_bytes(copy(ids), logits));
  gpt.prepare_inference();
  CHECK(same_bytes(gpt(ids), logits));
}

TEST_CASE("mixed precision: a prepared model rounds its weights once, until one is written to, and packs none in f32") {
  Gpt gpt = small_gpt(kMixed);
  const NoGrad no_grad;
  const auto conversions = [&gpt] {  // in one call, including conversions of weights
    const Tensor ids = randint(0, 20, {4, 8});
    profile::start();
    gpt(ids);
    const profile::Profile profile = profile::stop();
    return std::ranges::count_if(profile.calls,
                                 [](const profile::Call& c) { return std::string_view(c.kernel) == "copy"; });
  };
  const auto unprepared = conversions();
  gpt.prepare_inference();
  conversions();
  const auto prepared = conversions();
  CHECK(prepared + 8 <= unprepared);  // two blocks with four linear layers each
  const Tensor weight = gpt.state_dict().at("blocks.0.mlp.fc1.weight");
  for (const Tensor& p : gpt.parameters()) CHECK(p.impl().storage->derived() == nullptr);

  copy_into(weight, randn(weight.shape()));
  const Tensor ids = randint(0, 20, {4, 8});
  const Tensor logits = gpt(ids);
  CHECK(same_bytes(clone(gpt)(ids), logits));
  CHECK(conversions() > prepared);
  gpt.prepare_inference();
  CHECK(same_bytes(gpt(ids), logits));
}

TEST_CASE("mixed precision: from its second step on a training rounds its masters in one call, bit for bit the same") {
  const Tensor ids = randint(0, 20, {4, 8});
  for (const int64_t parts : {1, 2}) {
    Gpt gpt = small_gpt(kMixed), by_hand = small_gpt(kMixed);
    optim::AdamW adamw(gpt.parameters(), {.lr = 1e-2}), other(by_hand.parameters(), {.lr = 1e-2});
    training::Step step(gpt, adamw, training::cross_entropy_of, {.accumulate = parts});
    for (int t = 1; t <= 3; ++t) {
      INFO(parts << " parts, step " << t);
      profile::start();
      const double loss = step({ids, ids}).loss;
      const profile::Profile profile = profile::stop();
      CHECK(std::ranges::count_if(profile.calls, [](const profile::Call& c) {
              return std::string_view(c.kernel) == "round_each";
            }) == (t == 1 ? 0 : 1));
      // In by_hand, each use rounds its weight separately.
      CHECK(loss == training::differentiate(by_hand, training::cross_entropy_of, {ids, ids}, parts));
      other.step();
      for (size_t i = 0; i < gpt.parameters().size(); ++i)
        CHECK(same_bytes(gpt.parameters()[i], by_hand.parameters()[i]));
    }
  }
}

TEST_CASE("a rounded master is not read after its f32 original was written to, nor is a view of it") {
  const Tensor x = randn({3, 4}, {DType::bf16}), w = require_grad(randn({5, 4})), b = require_grad(randn({5}));
  Masters masters;
  {
    const RoundedMasters guard(masters);
    linear(x, w, b);
  }
  CHECK(masters.size() == 2);
  const RoundedMasters guard(masters);
  copy_into(w, detach(w) * 3);
  CHECK(same_bytes(linear(x, w, b), linear(x, detach(w).to(DType::bf16), detach(b).to(DType::bf16))));
  const Tensor part = narrow(w, 0, 0, 2);
  CHECK(same_bytes(linear(x, part), linear(x, detach(part).to(DType::bf16))));
}

TEST_CASE("mixed precision: what does not fit is refused with both dtypes") {
  using Catch::Matchers::Contains;
  TransformerOptions t{.precision = {Precision::full, Precision::bf16}};
  CHECK_THROWS_WITH(t.complete(), Contains("residual stream is bf16, the precision of products full"));
  const Tensor f32 = randn({4, 4}), bf16 = f32.to(DType::bf16), f64 = f32.to(DType::f64);
  CHECK_THROWS_WITH(linear(f32, bf16), Contains("f32") && Contains("bf16"));
  CHECK_THROWS_WITH(linear(bf16, f64), Contains("bf16") && Contains("f64"));
  CHECK_THROWS_WITH(linear(bf16, f32, randn({4}).to(DType::bf16)), Contains("dtypes differ"));
  CHECK_THROWS_WITH(mlp(f32, bf16, {}, bf16, {}), Contains("w1 is bf16"));
  CHECK_THROWS_WITH(add_norm(bf16, f32, {}), Contains("bf16") && Contains("f32"));
  CHECK_THROWS_WITH(normalize(f64, {}, {}, {}, DType::bf16),
                    Contains("the input is f64, so the output cannot be bf16"));
}
