// Residual connections in all forms of the stream: same function, undetermined directions of weights, initial weights,
// refusals.
#include "streams/transformer.h"

#include "nn/residual/all.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::centred_forms;
using streams::Form;
using streams::Role;
using streams::Stored;

namespace {

constexpr int64_t kClasses = 5, kRows = 4;
// About 30 consecutive sums of at most 18 terms, and as many in the backward. Norms of a few zero-mean numbers enlarge
// rounding errors, here by at most 100.
const double kRounding = 30 * std::sqrt(18) * 100 * 0x1p-52;

TransformerOptions transformer(const Arrangement& connection) {
  return {.width = 6, .depth = 4, .heads = 2, .mlp_width = 7, .affine = true, .connection = connection};
}

}  // namespace

TEST_CASE("every arrangement has one function and one gradient in all forms of its stream") {
  for (const Arrangement& a : kArrangements)
    for (const Form form : centred_forms())
      for (const bool affine : {false, true})
        for (int model = 0; model < 4; ++model) {
          INFO(a.name << ", " << name_of(form) << (affine ? ", affine" : "") << ", model " << model);
          const auto make = [&](Form f) -> std::unique_ptr<Module> {
            TransformerOptions t = transformer(a);
            t.affine = affine;
            if (model < 2)
              return std::make_unique<Gpt>(streams::make<Gpt>(
                  {.vocab = kClasses, .context = kRows, .tied = model == 1, .transformer = t}, {.form = f}));
            return std::make_unique<Vit>(streams::make<Vit>(
                {.image = 2, .channels = 1, .patch = 1, .classes = kClasses, .mean_pool = model == 3, .transformer = t},
                {.form = f}));
          };
          const auto reference = make(Form::layer_norm), other = make(form);
          draw(*reference, 7);
          const Tensor inputs = model < 2 ? randint(0, kClasses, {2, kRows}) : randn({2, 2, 2, 1}, {DType::f64});
          check_same_function(*reference, *other, kRounding, [&](Module& m) {
            const Tensor logits = m(inputs);
            manual_seed(8);
            backward(sum(logits * randn(logits.shape(), {DType::f64})));
            return detach(logits);
          });
        }
}

TEST_CASE("what weights of an arrangement hide is what their roles say") {
  // A writer may be shifted by a constant along the stream, and a reader after a norm without gain by a constant along
  // its rows. Nothing else may: every neutral matrix that touches the stream changes the logits.
  for (const Arrangement& a : kArrangements)
    for (const bool affine : {false, true})
      for (const Form form : centred_forms()) {
        manual_seed(9);
        TransformerOptions t = transformer(a);
        t.affine = affine;
        Gpt model = streams::make<Gpt>({.vocab = kClasses, .context = kRows, .transformer = t}, {.form = form});
        model.to(DType::f64);
        const NoGrad no_grad;
        for (const streams::NamedParameter& p : streams::named_parameters(model))
          if (p.tensor.rank() == 1) copy_into(p.tensor, p.tensor + randn(p.tensor.shape(), {DType::f64}) * 0.3);
        const Tensor ids = randint(0, kClasses, {2, kRows}), before = model(ids);
        for (const streams::NamedParameter& p : streams::named_parameters(model)) {
          INFO(a.name << ", " << name_of(form) << (affine ? ", affine, " : ", ") << p.name);
          const bool touches = p.name.starts_with("token") || p.name.starts_with("position") ||
                               p.name.ends_with("qkv.weight") || p.role != Role::neutral;
          if (!touches) continue;
          const Tensor kept = detached::clone(p.tensor);
          Dims shape = p.tensor.shape();
          shape[p.role == Role::neutral ? 1 : p.stream_dim] = 1;
          copy_into(p.tensor, kept + randn(shape, {DType::f64}));
          const double moved = largest(model(ids) - before);
          copy_into(p.tensor, kept);
          if (p.role == Role::neutral || (affine && p.role == Role::reader))
            CHECK(moved > 1e-3);
          else
            CHECK(moved < kRounding);
        }
      }
}

TEST_CASE("initial weights of DeepNorm, with gates too, and of Sub-LN are Xavier's, scaled where their papers say") {
  for (const Arrangement& a : {kDeepNorm, kDeepPostGpas, kSubLn}) {
    INFO(a.name);
    manual_seed(9);
    const int64_t d = 96, hidden = 160, depth = 3;
    TransformerOptions t{.width = d, .depth = depth, .heads = 2, .head_width = 32, .mlp_width = hidden};
    t.activation = Activation::swiglu, t.connection = a;
    const Gpt model({.vocab = 5, .context = 4, .transformer = t});
    const TensorMap state = model.state_dict();
    const double gain = a == kSubLn ? std::sqrt(std::log(2.0 * depth)) : std::pow(8.0 * depth, -0.25);
    const auto check_xavier = [](const Tensor& w, double g) {
      check_deviation(w, g * std::sqrt(2.0 / static_cast<double>(w.size(0) + w.size(1))));
    };
    for (int64_t block = 0; block < depth; ++block) {
      const auto weight = [&](const char* name) { return state.at(text("blocks.", block, ".", name, ".weight")); };
      const Tensor qkv = weight("attn.qkv");
      for (int64_t third = 0; third < 3; ++third)
        check_xavier(detached::narrow(qkv, 0, third * 64, 64), third < 2 ? 1 : gain);
      for (const char* name : {"attn.proj", "mlp.fc1", "mlp.gate", "mlp.fc2"}) {
        check_xavier(weight(name), gain);
        // Biases keep the default of Linear: uniform within 1 / sqrt(inputs). The largest of 96 comes close to that.
        const double bound = 1 / std::sqrt(static_cast<double>(weight(name).size(1))),
                     most = largest(state.at(text("blocks.", block, ".", name, ".bias")));
        CHECK(most <= bound);
        CHECK(most > 0.85 * bound);
      }
    }
  }
}

TEST_CASE("what an arrangement cannot be is refused in a line") {
  const auto build = [](const Arrangement& a, TransformerOptions t) {
    t.width = 8, t.heads = 2, t.connection = a;
    return Gpt({.vocab = 5, .context = 4, .transformer = t});
  };
  for (const Arrangement& a : {kMixLn, kPostPreGpas})
    CHECK_THROWS_WITH(build(a, {.depth = 3}), text(a.name, ": of 3 blocks a quarter is none, expected at least 4"));
  CHECK_THROWS_WITH(deep_norm_block(4, {}, {.index = 0, .depth = 0}),
                    "deepnorm: block 0 of 0, expected one of 0 to depth - 1");
  for (const Arrangement& a : {kPostLn, kDeepNorm, kResiDual, kMixLn, kDeepPostGpas, kPostPreGpas}) {
    CHECK_THROWS_WITH(build(a, {.depth = 4, .norm = NormKind::none}),
                      "connections with a norm behind the sum: the norm is none");
    CHECK_THROWS_WITH(streams::make<Gpt>({.transformer = transformer(a)}, {.centre_readers = true}),
                      Contains("readers are to be centred"));
    CHECK_THROWS_WITH(build(a, {.depth = 0}),
                      text("transformer: depth 0 with connections ", a.name, ", whose blocks alone have the norms"));
  }
  CHECK_THROWS_WITH(streams::make<Gpt>({.tied = true, .transformer = {.depth = 1, .connection = kPostLn}},
                                       {.form = Form::rms_norm, .storage = Stored::mapped}),
                    Contains("needs raw storage"));
  CHECK_THROWS_WITH(build(kResiDual, {.depth = 1, .affine = true, .final_norm = false}),
                    "residual: without its last norm the head has no sum to read beside rows with a gain");
  for (const Arrangement& a : kArrangements)
    if (!a.bare_entry) CHECK_NOTHROW(build(a, {.depth = 0})(zeros({1, 2}, {.dtype = DType::i64})));
}
