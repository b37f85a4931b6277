// nn::Gpt compared with a user's GPT with attention spelled out and no declarations. The function does not depend on
// key biases, and Adam moves them by the noise in their gradients.
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "equivalence/compare/compare.h"
#include "optim/adam.h"
#include "tests/equivalence/small_net.h"

namespace {

constexpr int64_t kVocab = 7, kTime = 5, kWidth = 8, kHeads = 2;

// x <- x + proj(attention(norm(x))), x <- x + fc2(gelu(fc1(norm(x)))), a norm and a head. The scores are multiplied by
// `factor` and by its reciprocal: the same function with other rounding.
struct OwnGpt : nn::Module {
  explicit OwnGpt(double scale, DType dtype) : factor(scale) { to(dtype); }
  double factor;
  nn::Embedding& token = add("token", nn::Embedding(kVocab, kWidth));
  nn::Embedding& position = add("position", nn::Embedding(kTime, kWidth));
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(kWidth, {.affine = false}));
  nn::Linear& qkv = add("qkv", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear& proj = add("proj", nn::Linear(kWidth, kWidth));
  nn::LayerNorm& norm2 = add("norm2", nn::LayerNorm(kWidth, {.affine = false}));
  nn::Linear& fc1 = add("fc1", nn::Linear(kWidth, 2 * kWidth));
  nn::Linear& fc2 = add("fc2", nn::Linear(2 * kWidth, kWidth));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(kWidth, {.affine = false}));
  nn::Linear& head = add("head", nn::Linear(kWidth, kVocab));

  Tensor attention(const Tensor& rows) {
    const int64_t batch = rows.size(0), time = rows.size(1), size = kWidth / kHeads;
    const Tensor all = permute(reshape(qkv(rows), {batch, time, 3 * kHeads, size}), {0, 2, 1, 3});
    const Tensor q = narrow(all, 1, 0, kHeads), k = narrow(all, 1, kHeads, kHeads),
                 v = narrow(all, 1, 2 * kHeads, kHeads);
    const Tensor at = arange(time), later = gt(unsqueeze(at, 0), unsqueeze(at, 1));
    const Tensor scores =
        matmul(q * factor, transpose(k, -1, -2)) * (1 / (factor * std::sqrt(static_cast<double>(size))));
    const Tensor share = softmax(masked_fill(scores, later, -INFINITY));
    return proj(reshape(permute(matmul(share, v), {0, 2, 1, 3}), {batch, time, kWidth}));
  }
  Tensor forward(const Tensor& ids) override {
    Tensor x = token(ids) + position(arange(ids.size(1)));
    x = x + attention(norm1(x));
    x = x + fc2(gelu(fc1(norm2(x))));
    return head(norm(x));
  }
};

MakeModel own(double factor, DType dtype) {
  return [=] {
    manual_seed(4);
    return std::make_unique<OwnGpt>(factor, dtype);
  };
}

MakeModel library(DType dtype, streams::Form form = streams::Form::layer_norm) {
  return [=] {
    manual_seed(4);
    auto model = std::make_unique<nn::Gpt>(
        streams::make<nn::Gpt>({.vocab = kVocab,
                                .context = kTime,
                                .transformer = {.width = kWidth, .depth = 1, .heads = kHeads, .mlp_width = 2 * kWidth}},
                               {.form = form}));
    model->to(dtype);
    return model;
  };
}

const ParameterMap kToOwn = ParameterMap()
                                .add("blocks.0.attn.qkv.*", "qkv.*")
                                .add("blocks.0.attn.proj.*", "proj.*")
                                .add("blocks.0.mlp.*.*", "*.*");
const ParameterMap kToLibrary = ParameterMap()
                                    .add("qkv.*", "blocks.0.attn.qkv.*")
                                    .add("proj.*", "blocks.0.attn.proj.*")
                                    .add("fc1.*", "blocks.0.mlp.fc1.*")
                                    .add("fc2.*", "blocks.0.mlp.fc2.*");

Examples ids_of(int64_t step) {
  Generator g{5, static_cast<uint64_t>(step) << 20};
  const Tensor x = randint(0, kVocab, {6, kTime}, kCpu, g);
  return {x, randint(0, kVocab, {6, kTime}, kCpu, g)};
}

const MakeOptimizer kAdamW = [](const std::vector<Tensor>& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-3});
};

Comparison trained(const MakeModel& a, const MakeModel& b, const ParameterMap& map = {},
                   const MakeOptimizer& optimizer = kAdamW) {
  return compare_trajectories(a, b, map, cross_entropy_of, optimizer, ids_of, {.steps = 5});
}

}  // namespace

TEST_CASE("own gpt: the library's trains as one's own does, whichever declares the biases of keys, or neither") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto same = [&](const char* what, const Comparison& c) {
      INFO(name_of(dtype) << ", " << what << ": " << c.sentence());
      CHECK(c.equivalent());
    };
    same("the first declares", trained(library(dtype), own(3, dtype), kToOwn));
    same("the second declares", trained(own(3, dtype), library(dtype), kToLibrary));
    same("in another form", trained(own(3, dtype), library(dtype, streams::Form::rms_norm), kToLibrary));
    same("neither declares", trained(own(3, dtype), own(1, dtype)));
    same("both declare", trained(library(dtype), library(dtype, streams::Form::crms_norm)));
  }
}

TEST_CASE("own gpt: a parameter that is wrongly declared blind is still compared") {
  const MakeModel declares = [] {
    auto model = own(1, DType::f64)();
    dynamic_cast<OwnGpt&>(*model).fc1.mark_blind("bias", 0, 2 * kWidth);
    return model;
  };
  // AdamW that leaves one parameter unchanged, but only in the last model that is made, B.
  struct Frozen : optim::Optimizer {
    Frozen(const std::vector<Tensor>& p, size_t which, bool freezes)
        : Optimizer("frozen", p.size()), adamw(p, {.lr = 1e-3}) {
      if (freezes) frozen = p[which], value = detached(frozen);
    }
    static Tensor detached(const Tensor& x) { return from_vector(x.to_vector<double>(), x.shape()); }
    void step(double scale) override {
      adamw.step(scale);
      if (frozen.defined()) copy_into(frozen, value);
    }
    optim::AdamW adamw;
    Tensor frozen, value;
  };
  const auto names = own(1, DType::f64)()->named_parameters();
  for (size_t which = 0; which < names.size(); ++which)
    for (const bool a_declares : {false, true}) {
      int made = 0;
      const MakeOptimizer last_freezes = [&](const std::vector<Tensor>& p) {
        const NoGrad no_grad;
        return std::make_unique<Frozen>(p, which, ++made == 4 + 2 * CompareOptions().controls);
      };
      INFO(names[which].name << (a_declares ? ", declared by the first: " : ", by the second: "));
      const Comparison c =
          expected(Verdict::different, trained(a_declares ? declares : own(3, DType::f64),
                                               a_declares ? own(3, DType::f64) : declares, {}, last_freezes));
    }
}

TEST_CASE("compare: a parameter that is 0 and gets no gradient is no reason for doubt") {
  struct WithSpare : SmallNet {
    explicit WithSpare(streams::Form form) : SmallNet({.form = form}) {}
    nn::Parameter& spare = add_parameter("spare", zeros({4}, {DType::f64}));
  };
  expected(Verdict::equivalent,
           compare_trajectories([] { return std::make_unique<WithSpare>(streams::Form::layer_norm); },
                                [] { return std::make_unique<WithSpare>(streams::Form::rms_norm); }, {},
                                cross_entropy_of, kAdamW, small_batch, {.steps = 4}));
}
