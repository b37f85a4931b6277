// Equivalence at the level of gradients (docs/normalization.md): the statements F5 and F6, at random points of whole
// models.
#include <variant>

#include "equivalence/coordinates/parametrisation.h"
#include "tests/equivalence/room.h"

using namespace isonorm::nn;
using equivalence::mapped_state;
using equivalence::raw_gradient;
using streams::Stream;

namespace {

constexpr TensorOptions kF64{DType::f64};
constexpr double kTolerance = 1e-12;
const Form kForms[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// One model kind: how it is built, and a batch for it.
struct Kind {
  const char* name;
  std::variant<VitOptions, GptOptions> options;
  Tensor inputs, targets;
  bool raw_only = false;  // a tied table is written and read: no one map gives its mapped gradient

  std::unique_ptr<Module> build(Form form, Stored storage, bool affine) const {
    std::unique_ptr<Module> m = std::visit(
        [&]<class O>(O o) -> std::unique_ptr<Module> {
          using M = std::conditional_t<std::is_same_v<O, VitOptions>, Vit, Gpt>;
          // Attention's inner width, the MLP's width and the stream's are three different numbers.
          o.transformer = {.width = 8, .depth = 2, .heads = 2, .head_width = 5, .mlp_width = 12, .affine = affine};
          return std::make_unique<M>(streams::make<M>(o, {.form = form, .storage = storage}));
        },
        options);
    m->to(DType::f64);
    return m;
  }
};

std::vector<Kind> kinds() {
  manual_seed(11);
  const Tensor images = randn({3, 6, 6, 1}, kF64), classes = randint(0, 5, {3}), ids = randint(0, 13, {4, 6}),
               next = randint(0, 13, {4, 6});
  return {{"vit", VitOptions{.image = 6, .patch = 3, .classes = 5, .transformer = {}}, images, classes},
          {"vit, mean pooled", VitOptions{.image = 6, .patch = 3, .classes = 5, .mean_pool = true, .transformer = {}},
           images, classes},
          {"gpt", GptOptions{.vocab = 13, .context = 6, .transformer = {}}, ids, next},
          {"gpt, tied", GptOptions{.vocab = 13, .context = 6, .tied = true, .transformer = {}}, ids, next, true}};
}

// Random parameters with a large mean, so that every mean component that should be invisible is there.
void scramble(Module& m, uint64_t seed) {
  manual_seed(seed);
  for (const Tensor& p : m.parameters()) copy_into(p, randn(p.shape(), kF64) * 0.3 + 0.15);
}

double loss_and_gradients(Module& m, const Kind& k) {
  for (const Tensor& p : m.parameters()) set_grad(p, {});
  const Tensor loss = cross_entropy(m(k.inputs), k.targets);
  backward(loss);
  return loss.item();
}

double largest_gradient(const Module& m) {
  double worst = 0;
  for (const Tensor& p : m.parameters()) worst = std::max(worst, amax(abs(p.grad())).item());
  return worst;
}

}  // namespace

TEST_CASE("G4: with raw parameters every form has Pre-LN's loss and gradients, entry by entry, at random points") {
  for (const bool affine : {false, true})
    for (const Kind& k : kinds()) {
      auto reference = k.build(Form::layer_norm, Stored::raw, affine);
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        scramble(*reference, seed);
        const double loss = loss_and_gradients(*reference, k), scale = largest_gradient(*reference);
        for (Form form : kForms) {
          INFO(k.name << ", " << name_of(form) << (affine ? ", affine" : "") << ", point " << seed);
          auto m = k.build(form, Stored::raw, affine);
          m->load_state_dict(reference->state_dict());
          CHECK(std::abs(loss_and_gradients(*m, k) - loss) < kTolerance * loss);
          const auto mine = streams::named_parameters(*m), theirs = streams::named_parameters(*reference);
          double worst = 0;
          for (size_t i = 0; i < mine.size(); ++i)
            worst = std::max(worst, amax(abs(mine[i].tensor.grad() - theirs[i].tensor.grad())).item());
          CHECK(worst < kTolerance * scale);
        }
      }
    }
}

TEST_CASE("G5: mapped parameters have the mapped gradients") {
  for (const Kind& k : kinds()) {
    if (k.raw_only) continue;
    auto reference = k.build(Form::layer_norm, Stored::raw, false);
    scramble(*reference, 7);
    const double loss = loss_and_gradients(*reference, k), scale = largest_gradient(*reference);
    for (Form form : kForms) {
      INFO(k.name << ", " << name_of(form));
      const Stream stream(form, 8, Stored::mapped);
      auto m = k.build(form, Stored::mapped, false);
      m->load_state_dict(mapped_state(*reference, stream));
      CHECK(std::abs(loss_and_gradients(*m, k) - loss) < kTolerance * loss);
      const auto mine = streams::named_parameters(*m), theirs = streams::named_parameters(*reference);
      double worst = 0, unprojected = 0;
      for (size_t i = 0; i < mine.size(); ++i) {
        const streams::NamedParameter& p = mine[i];
        Tensor lifted = raw_gradient(p.tensor.grad(), p, stream);
        const Tensor expected = theirs[i].tensor.grad();
        unprojected = std::max(unprojected, amax(abs(lifted - expected)).item());
        // RMSNorm's gradient of a writer has a mean that Pre-LN's has not (F5, F6).
        if (form == Form::rms_norm && p.role == Role::writer) lifted = recentre(lifted, p.stream_dim);
        worst = std::max(worst, amax(abs(lifted - expected)).item());
        if (form == Form::crms_isometric && p.role != Role::neutral)
          CHECK(std::abs(norm(p.tensor.grad()).item() - norm(expected).item()) < kTolerance * scale);
      }
      CHECK(worst < kTolerance * scale);
      if (form == Form::rms_norm) CHECK(unprojected > 1e-3 * scale);
    }
  }
}
