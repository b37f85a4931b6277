// The bits of a result do not depend on the addresses of tensors. Kernels read tensors that begin at a multiple of 16
// bytes in packs, and other tensors element by element. Both variants must add in the same order, and a compiler must
// fuse products and sums in both or in neither.
#include "autograd/fused/group_norm.h"
#include "autograd/fused/mlp.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/rotary.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "optim/sign.h"
#include "optim/trust_ratio.h"
#include "tests/support/device.h"
#include "tests/support/ops.h"
#include "tests/support/shifted.h"

using namespace isonorm;
using namespace isonorm::test;

namespace {

using Tensors = std::vector<Tensor>;
constexpr DType kFloating[] = {DType::f64, DType::f32, DType::bf16};

// Compares f(inputs), a list of tensors, and its gradients: once with inputs and cotangents that begin at multiples of
// 16 bytes, once with the same values at other addresses.
template <class F> void compare(const std::vector<Dims>& shapes, DType dtype, const F& f) {
  Generator g{.seed = 15};
  Tensors inputs;
  for (const Dims& shape : shapes) inputs.push_back(to(randn(shape, {}, g).to(dtype), kCuda));
  const auto run = [&](auto place) {
    Tensors x, cotangents;
    for (const Tensor& t : inputs) x.push_back(require_grad(place(t)));
    Tensors all = f(x);
    Generator same{.seed = 16};
    for (const Tensor& y : all) cotangents.push_back(place(to(randn(y.shape(), {}, same).to(y.dtype()), kCuda)));
    const Tensors d = grad(all, x, cotangents);
    all.insert(all.end(), d.begin(), d.end());
    return all;
  };
  const Tensors there = run([](const Tensor&t) { return clone(t); }), beside = run(shifted);
  for (size_t i = 0; i < there.size(); ++i) {
    INFO("result " << i);
    CHECK(same_bytes(beside[i], there[i]));
  }
}

// Rows for one warp, for a block, and longer than registers hold. Every width is a whole number of packs.
const Dims kRows[] = {{9, 64}, {5, 1032}, {3, 9000}, {130, 16}};

}  // namespace

TEST_CASE("norms of rows have the same bits at any address") {
  for (DType dtype : kFloating)
    for (const Dims& shape : kRows)
      for (NormKind kind : {NormKind::layer, NormKind::rms, NormKind::crms})
        for (double p : {1.0, 0.4}) {
          if (p < 1 && kind != NormKind::rms) continue;
          INFO(text(dtype, ' ', shape, ' ', name_of(kind), ' ', p));
          const NormSpec spec{.kind = kind, .p = p};
          const Dims width{shape[1]};
          compare({shape}, dtype, [&](const Tensors& x) { return Tensors{normalize(x[0], spec)}; });
          compare({shape, shape, width, width}, dtype, [&](const Tensors& x) {
            const AddNorm r = add_norm(x[0], x[1], spec, x[2], x[3]);
            return Tensors{r.sum, r.normed};
          });
        }
}

TEST_CASE("softmax, losses and sums of rows have the same bits at any address") {
  for (DType dtype : kFloating)
    for (const Dims& shape : kRows) {
      INFO(text(dtype, ' ', shape));
      Generator g{.seed = 17};
      const Tensor target = to(randint(0, shape[1], {shape[0]}, kCpu, g), kCuda);
      compare({shape}, dtype, [](const Tensors& x) { return Tensors{softmax(x[0]), log_softmax(x[0])}; });
      compare({shape}, dtype, [](const Tensors& x) { return Tensors{sum(x[0], {1}), recentre(x[0], 1)}; });
      for (double smoothing : {0.0, 0.1})
        compare({shape}, dtype,
                [&](const Tensors& x) { return Tensors{cross_entropy(x[0], target, {.label_smoothing = smoothing})}; });
    }
}

TEST_CASE("group norms, rotary embeddings, multilayer perceptrons and maps have the same bits at any address") {
  for (DType dtype : kFloating) {
    const auto check = [&](const char* name, const std::vector<Dims>& shapes, const auto& f) {
      INFO(name_of(dtype) << ", " << name);
      compare(shapes, dtype, [&](const Tensors& x) { return Tensors{f(x)}; });
    };
    for (NormKind kind : {NormKind::layer, NormKind::rms}) {
      check("group norm", {{2, 5, 16}, {16}, {16}},
            [&](const Tensors& x) { return group_norm(x[0], 4, x[1], x[2], {.kind = kind}); });
      check("bare group norm", {{2, 5, 16}},
            [&](const Tensors& x) { return group_norm(x[0], 2, {}, {}, {.kind = kind}); });
    }
    for (bool halves : {false, true})
      check("rotary", {{2, 5, 3, 32}}, [&](const Tensors& x) { return rotary(x[0], {.halves = halves}); });
    for (GeluForm form : {GeluForm::erf, GeluForm::tanh})
      check("mlp", {{24, 40}, {64, 40}, {64}, {40, 64}, {40}},
            [&](const Tensors& x) { return mlp(x[0], x[1], x[2], x[3], x[4], form); });
    const auto unary = [&](const char* name, Tensor (*f)(const Tensor&)) {
      check(name, {{3, 40}}, [&](const Tensors& x) { return f(x[0]); });
      check(name, {{3, 40}}, [&](const Tensors& x) { return f(abs(x[0])); });
    };
    unary("exp", exp), unary("exp2", exp2), unary("expm1", expm1), unary("log", log), unary("log2", log2);
    unary("log1p", log1p), unary("sqrt", sqrt), unary("rsqrt", rsqrt), unary("square", square), unary("sin", sin);
    unary("cos", cos), unary("erf", erf), unary("tanh", tanh), unary("sigmoid", sigmoid), unary("silu", silu);
    unary("softplus", softplus), unary("gelu", gelu), unary("gelu_tanh", gelu_tanh), unary("reciprocal", reciprocal);
    check("multiply and add", {{3, 40}, {40}}, [](const Tensors& x) { return x[0] * x[1] + x[0]; });
    check("divide", {{3, 40}, {40}}, [](const Tensors& x) { return x[0] / x[1]; });
    check("power", {{3, 40}, {40}}, [](const Tensors& x) { return pow(abs(x[0]), x[1]); });
    check("remainder", {{3, 40}, {40}}, [](const Tensors& x) { return remainder(x[0], x[1]); });
  }
}

TEST_CASE("steps of optimizers have the same bits at any address") {
  for (DType dtype : kFloating) {
    Generator g{.seed = 18};
    const Tensor w = to(randn({5000}, {}, g).to(dtype), kCuda);
    const auto run = [&](auto place, auto make) {
      const Tensor weight = require_grad(place(w));
      const auto optimizer = make(Tensors{weight});
      Generator same{.seed = 19};
      for (int i = 0; i < 3; ++i) {
        set_grad(weight, place(to(randn({5000}, {}, same).to(dtype), kCuda)));
        optimizer->step(0.5);
      }
      return detach(weight);
    };
    const auto check = [&](const char* name, auto make) {
      INFO(text(dtype, ' ', name));
      CHECK(same_bytes(run(shifted, make), run([](const Tensor& t) { return clone(t); }, make)));
    };
    check("adamw", [](const Tensors& p) { return std::make_unique<optim::AdamW>(p); });
    check("sgd", [](const Tensors& p) {
      return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
    });
    check("lion", [](const Tensors& p) { return std::make_unique<optim::Lion>(p); });
    check("lamb", [](const Tensors& p) { return std::make_unique<optim::Lamb>(p); });
    check("adagrad", [](const Tensors& p) { return std::make_unique<optim::Adagrad>(p); });
    check("rmsprop", [](const Tensors& p) {
      return std::make_unique<optim::Rmsprop>(p, optim::RmspropOptions{.momentum = 0.9, .centered = true});
    });
  }
}
