// Equivalence at the level of gradients (docs/normalization.md): statements F2 to F6 and the tests G2 to G5, with
// negative controls.
#include "streams/transformer.h"
#include "tests/support/catch.h"

#include "autograd/engine.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/random.h"
#include "equivalence/coordinates/parametrisation.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::nn;
using equivalence::mapped_state;
using equivalence::raw_gradient;
using streams::Form;
using streams::layout_of;
using streams::parametrize;
using streams::Role;
using streams::Stored;
using streams::Stream;

namespace {

constexpr TensorOptions kF64{DType::f64};
constexpr double kTolerance = 1e-12;
const Form kForms[] = {Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// Attention's inner width, the MLP's width and the stream's are three different numbers.
TransformerOptions transformer(bool affine) {
  return {.width = 8, .depth = 2, .heads = 2, .head_width = 5, .mlp_width = 12, .affine = affine};
}

template <class M, class Options> std::unique_ptr<Module> in_f64(const Options& o, Form form, Stored storage) {
  auto m = std::make_unique<M>(streams::make<M>(o, {.form = form, .storage = storage}));
  m->to(DType::f64);
  return m;
}

// One model kind: how it is built, and a batch for it.
struct Kind {
  const char* name;
  std::unique_ptr<Module> (*build)(Form, Stored, bool affine);
  Tensor inputs, targets;
  bool raw_only = false;  // a tied table is written and read: no one map gives its mapped gradient
};

std::vector<Kind> kinds() {
  manual_seed(11);
  return {{"vit",
           [](Form f, Stored s, bool a) {
             return in_f64<Vit>(VitOptions{.image = 6, .patch = 3, .classes = 5, .transformer = transformer(a)}, f, s);
           },
           randn({3, 6, 6, 1}, kF64), randint(0, 5, {3})},
          {"vit, mean pooled",
           [](Form f, Stored s, bool a) {
             const VitOptions o{.image = 6, .patch = 3, .classes = 5, .mean_pool = true, .transformer = transformer(a)};
             return in_f64<Vit>(o, f, s);
           },
           randn({3, 6, 6, 1}, kF64), randint(0, 5, {3})},
          {"gpt",
           [](Form f, Stored s, bool a) {
             return in_f64<Gpt>(GptOptions{.vocab = 13, .context = 6, .transformer = transformer(a)}, f, s);
           },
           randint(0, 13, {4, 6}), randint(0, 13, {4, 6})},
          {"gpt, tied",
           [](Form f, Stored s, bool a) {
             return in_f64<Gpt>(GptOptions{.vocab = 13, .context = 6, .tied = true, .transformer = transformer(a)}, f,
                                s);
           },
           randint(0, 13, {4, 6}), randint(0, 13, {4, 6}), true}};
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

TEST_CASE("G2: the three norms agree on zero-mean rows, and so do their vector-Jacobian products") {
  manual_seed(1);
  const int64_t d = 7;
  const Tensor x = recentre(randn({5, d}, kF64), 1), g = randn({5, d}, kF64);
  const NormOptions o{.eps = 1e-5};
  const auto product = [&](auto f, const Tensor& at, const Tensor& cotangent) {
    const Tensor leaf = require_grad(detach(at));
    return grad(f(leaf), {leaf}, cotangent)[0];
  };
  const Tensor layer = layer_norm(x, {}, {}, o), rms = rms_norm(x, {}, {}, o);
  const Tensor v = contiguous(narrow(x, 1, 0, d - 1));
  const Tensor crms = crms_norm(v, {}, {}, o);
  check_close(rms, layer, 1e-14);
  check_close(crms, narrow(rms, 1, 0, d - 1), 1e-14);
  // dL/dx of LayerNorm is P times that of RMSNorm (F5).
  const Tensor g_layer = product([&](const Tensor& t) { return layer_norm(t, {}, {}, o); }, x, g);
  const Tensor g_rms = product([&](const Tensor& t) { return rms_norm(t, {}, {}, o); }, x, g);
  check_close(g_layer, recentre(g_rms, 1), 1e-14);
  // v enters as D v: dL/dv = D^T dL/dx, for cotangents related by D^T as well.
  const auto dual = [&](const Tensor& t) { return contiguous(narrow(t, 1, 0, d - 1) - narrow(t, 1, d - 1, 1)); };
  check_close(product([&](const Tensor& t) { return crms_norm(t, {}, {}, o); }, v, dual(g)), dual(g_rms), 1e-14);
}

TEST_CASE("G3: Pre-LN is blind to shifts of its stream, writers' columns and readers' rows; Pre-RMSNorm is not") {
  for (const bool mapped : {false, true}) {
    const auto form = mapped ? Form::rms_norm : Form::layer_norm;
    const auto storage = mapped ? Stored::mapped : Stored::raw;
    for (const Kind& k : kinds()) {
      if (mapped && k.raw_only) continue;
      INFO(k.name << (mapped ? ", plain rms_norm" : ", layer_norm"));
      auto m = k.build(form, storage, false);
      scramble(*m, 21);
      loss_and_gradients(*m, k);
      double worst = 0;
      for (const streams::NamedParameter& p : streams::named_parameters(*m)) {
        if (p.role == Role::neutral) continue;
        const Tensor sums = sum(p.tensor.grad(), {p.stream_dim});
        worst = std::max(worst, amax(abs(sums)).item() / amax(abs(p.tensor.grad())).item());
      }
      if (mapped)
        CHECK(worst > 1e-3);
      else
        CHECK(worst < 1e-13 * 8);
    }
  }
}

TEST_CASE("F2: the gradient of a Pre-LN stream has zero mean in every row, that of Pre-RMSNorm has not") {
  manual_seed(4);
  for (Form form : {Form::layer_norm, Form::rms_norm}) {
    const TransformerOptions o = [&] {
      TransformerOptions one = transformer(false);
      one.depth = 1;
      return one.complete();
    }();
    struct Net : Module {
      TransformerStack& block;
      PreNorm& norm = add("norm", PreNorm(8));
      Linear& head = add("head", Linear(8, 3));
      explicit Net(const TransformerOptions& o) : block(add("blocks", TransformerStack(o))) {}
    } net(o);
    parametrize(net,
                layout_of(o, {.tables = {}, .stacks = {{.blocks = "blocks", .depth = 1}}, .heads = {{"head", "norm"}}}),
                Stream(form, 8, Stored::mapped));
    TransformerStack& block = net.block;
    PreNorm& norm = net.norm;
    Linear& head = net.head;
    net.to(DType::f64);
    scramble(net, 9);
    const Tensor x = require_grad(randn({2, 5, 8}, kF64));
    Residual r{x, {}};
    block(r);
    backward(sum(square(head(norm.read(r)))));
    const double ratio = amax(abs(mean(x.grad(), {-1}))).item() / amax(abs(x.grad())).item();
    if (form == Form::layer_norm)
      CHECK(ratio < 1e-14);
    else
      CHECK(ratio > 1e-3);
  }
}

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
