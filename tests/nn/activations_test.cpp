// Whole models whose activations wait for the backward as bf16: loss, gradients, forms of the stream, memory.
#include "core/memory/allocator.h"
#include "streams/transformer.h"
#include "tests/support/ops.h"

using namespace isonorm;
using namespace isonorm::nn;
using streams::Form;

namespace {

struct Step {
  Tensor loss;
  std::vector<Tensor> gradients;
};

Step step(Module& model, const Tensor& inputs, const Tensor& targets, DType activations) {
  const SaveActivations guard(activations);
  Step s{cross_entropy(model(inputs), targets), {}};
  s.gradients = grad(s.loss, model.parameters());
  return s;
}

// Largest over the parameters of ||a - b|| / ||b||.
double deviation(const Step& a, const Step& b) {
  double worst = 0;
  for (size_t i = 0; i < a.gradients.size(); ++i) worst = std::max(worst, distance({a.gradients[i]}, {b.gradients[i]}));
  return worst;
}

Vit vit(Form form, int64_t width = 32, int64_t depth = 3) {
  return streams::make<Vit>(
      {.image = 28, .patch = 7, .mean_pool = true, .transformer = {.width = width, .depth = depth, .heads = 4}},
      {.form = form});
}

}  // namespace

TEST_CASE("activations in bf16: the same loss, and gradients within what their roundings explain") {
  manual_seed(1);
  const int depth = 3;
  Vit images(vit(Form::rms_norm, 32, depth));
  TransformerOptions t{.width = 32, .depth = depth, .heads = 4, .activation = Activation::swiglu};
  t.positions = Positions::rotary, t.affine = true;
  Gpt text({.vocab = 40, .context = 32, .tied = true, .transformer = t});
  const Tensor ids = randint(0, 40, {8, 32});
  struct Case {
    Module& model;
    Tensor inputs, targets;
  };
  for (const Case& c : {Case{images, randn({16, 28, 28, 1}), randint(0, 10, {16})}, Case{text, ids, ids}}) {
    const Step exact = step(c.model, c.inputs, c.targets, DType::f32),
               rounded = step(c.model, c.inputs, c.targets, DType::bf16);
    CHECK(same_bytes(rounded.loss, exact.loss));
    // A gradient passes the rules of 4 sub-layers a block, the last norm's and its own parameter's; each of them reads
    // entries that are off by 2^-8 at most. Entries err independently, so that sums of them err by less than that, and
    // by far more than f32 does.
    const double found = deviation(rounded, exact);
    CHECK(found < (4 * depth + 2) * 0x1p-8);
    CHECK(found > 0x1p-13);
  }
}

TEST_CASE("activations in bf16: an f64 model is as it was") {
  manual_seed(1);
  Vit model(vit(Form::rms_norm));
  model.to(DType::f64);
  const Tensor images = randn({16, 28, 28, 1}, {DType::f64}), labels = randint(0, 10, {16});
  const Step exact = step(model, images, labels, DType::f64), guarded = step(model, images, labels, DType::bf16);
  for (size_t i = 0; i < exact.gradients.size(); ++i) REQUIRE(same_bytes(guarded.gradients[i], exact.gradients[i]));
}

TEST_CASE("activations in bf16: the forms of the stream keep agreeing") {
  manual_seed(1);
  const Tensor images = randn({16, 28, 28, 1}), labels = randint(0, 10, {16});
  Vit layer(vit(Form::layer_norm));
  const Step exact = step(layer, images, labels, DType::f32), rounded = step(layer, images, labels, DType::bf16);
  const double rounding = deviation(rounded, exact);
  const auto from_layer_norm = [&](Form form) {
    Vit other(vit(form));
    other.load_state_dict(layer.state_dict());
    return deviation(step(other, images, labels, DType::bf16), rounded);
  };
  // RMSNorm's rows are LayerNorm's but for roundings in f32, a few 2^-24 of a row. Those move an entry across the
  // border between two neighbours in bf16, 2^-8 apart, once in about 2^12 entries: a relative error of 2^-8 in so few
  // entries is 2^-6 of the same error in all of them, by the root of the mean square.
  CHECK(from_layer_norm(Form::rms_norm) < rounding / 4);
  // The compressed rows are other numbers, with roundings of their own, independent of LayerNorm's.
  CHECK(from_layer_norm(Form::crms_norm) < 2 * rounding);
  CHECK(from_layer_norm(Form::crms_isometric) < 2 * rounding);
}

TEST_CASE("activations in bf16: a step takes less than three quarters of the memory") {
  manual_seed(1);
  // In rows x width, f32: a block keeps the results of both norms, qkv (3), attention's result and the hidden entries
  // of the MLP (4), 10 in all, or 5. The backward of the last block's MLP has its input, result and hidden entries in
  // f32 beside them, and needs 3 more in either case (two gradients of the stream, a loss's rows) and 4 for the
  // activated entries: with 4 blocks 47 against 20 + 1 + 4 + 7 = 32.
  Vit model(vit(Form::rms_norm, 64, 4));
  const Tensor images = randn({256, 28, 28, 1}), labels = randint(0, 10, {256});
  const auto peak = [&](DType activations) {
    const int64_t before = host_allocator().stats().current;
    host_allocator().reset_peak();
    step(model, images, labels, activations);
    CHECK(host_allocator().stats().current == before);
    return static_cast<double>(host_allocator().stats().peak - before);
  };
  const double f32 = peak(DType::f32), bf16 = peak(DType::bf16);
  INFO(f32 << " and " << bf16 << " bytes");
  CHECK(bf16 < 0.75 * f32);
  CHECK(bf16 > 0.5 * f32);
}
