// Whole models that store activations for the backward as bf16: loss, gradients, forms of the stream, memory.
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
    // A gradient passes the backward of 4 sub-layers per block, of the last norm and of its own parameter. Each reads
    // entries with a relative error of at most 2^-8. The errors are independent, so sums err by less than that, but by
    // far more than f32.
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
  // RMSNorm's rows differ from LayerNorm's only by f32 roundings, a few 2^-24 of a row. In about one of 2^12 entries
  // this moves the value to the neighbouring bf16 number, 2^-8 away. In the root mean square, an error of 2^-8 in one
  // of 2^12 entries is 2^-6 of the same error in every entry.
  CHECK(from_layer_norm(Form::rms_norm) < rounding / 4);
  // Compressed rows hold other numbers. Their roundings are independent of LayerNorm's.
  CHECK(from_layer_norm(Form::crms_norm) < 2 * rounding);
  CHECK(from_layer_norm(Form::crms_isometric) < 2 * rounding);
}

TEST_CASE("activations in bf16: a step takes less than three quarters of the memory") {
  manual_seed(1);
  // Memory in units of rows x width x f32. A block stores the results of both norms, qkv (3), the attention output and
  // the hidden units of the MLP (4): 10 units, or 5 in bf16. During the backward of the last block's MLP, its input,
  // output and hidden units exist in f32 as well. Both cases need 3 more (two gradients of the stream, the rows of the
  // loss) and 4 for the activation's output. With 4 blocks that is 47 against 20 + 1 + 4 + 7 = 32.
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
