// Uses of models that are split over ranks, other than training: each gives the results of the whole model or is
// refused.
#include "distributed/parallel/parts.h"

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/kernels/copy.h"
#include "distributed/parallel/sharded_parameters.h"
#include "distributed/parallel/tensor_parallel.h"
#include "distributed/world.h"
#include "nn/encoder_decoder.h"
#include "nn/gpt.h"
#include "optim/adam.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "training/model_file.h"
#include "training/steps/step.h"

using namespace isonorm;
using Catch::Matchers::Contains, Catch::Matchers::Equals;
using distributed::Group, distributed::run_ranks;
using parallel::ShardedParameters, parallel::TensorParallel, parallel::part_of;
using training::Step, training::StepOptions, training::cross_entropy_of;

namespace {

constexpr int64_t kVocab = 11, kTime = 6;
constexpr double kClose = 1e-9;  // AdamW divides by a square root, which amplifies rounding of small gradients

nn::GptOptions options() {
  return {.vocab = kVocab,
          .context = kTime,
          .transformer = {.width = 8, .depth = 2, .heads = 2, .mlp_width = 10, .qk_norm = NormKind::layer}};
}

nn::Gpt model_of(const nn::GptOptions& o = options()) {
  manual_seed(3);
  return nn::Gpt(o);
}

training::Examples batch_of(uint64_t step, int64_t ignored = 0) {
  Generator g{9, step << 32};
  const Tensor ids = randint(0, kVocab, {4, kTime + 1}, kCpu, g);
  const Tensor targets = narrow(ids, 1, 1, kTime).contiguous();
  if (ignored > 0) kernels::fill(narrow(targets, 0, 4 - ignored, ignored), -100);
  return {narrow(ids, 1, 0, kTime).contiguous(), targets};
}

// Weights after three steps.
TensorMap trained(nn::Gpt& model, const StepOptions& o, int64_t ignored = 0) {
  optim::AdamW adamw(model.parameters(), {.lr = 1e-2, .eps = 1e-4});
  Step step(model, adamw, cross_entropy_of, o);
  for (uint64_t i = 0; i < 3; ++i) step(batch_of(i, ignored));
  return o.parts ? o.parts->whole() : nn::clone(model.state_dict());
}

void check_close(const TensorMap& found, const TensorMap& expected, double close) {
  for (const auto& [name, x] : expected) {
    const Tensor& y = *found.find(name);
    check(y.dtype() == x.dtype(), name, " is ", y.dtype());
    const double off = amax(abs((y - x).to(DType::f64))).item();
    check(off <= close, name, " is ", off, " off");
  }
}

// Computes with the stored tensor. Each rank has half: one row, which broadcasts just as well.
struct Raw : nn::Module {
  nn::Parameter& scale = add_parameter("scale", ones({2, 3}));
  Tensor forward(const Tensor& x) override { return x * scale; }
};

std::string refusal(const std::function<void(Group&)>& f, int ranks = 2) try {
  run_ranks(ranks, f);
  return "";
} catch (const Error& e) {
  return e.what();
}

}  // namespace

TEST_CASE("parts: a rank whose targets are all ignored") {
  run_ranks(2, [](Group& g) {
    nn::Gpt all = model_of();
    const TensorMap expected = trained(all, {.group = &g}, 2);
    for (const bool keep : {false, true}) {
      nn::Gpt model = model_of();
      ShardedParameters shards(model, g, {.keep_whole = keep});
      check_close(trained(model, {.group = &g, .parts = &shards}, 2), expected, 0);
    }
  });
}

TEST_CASE("parts: a model that moves to another dtype, is frozen and thawed") {
  const auto moved = [](nn::Gpt& m) {
    m(batch_of(0).inputs);  // gathered parameters may be kept from here
    m.to(DType::f64), m.freeze(), m.freeze(false);
  };
  nn::Gpt one = model_of();
  const TensorMap start = nn::clone(one.state_dict());
  moved(one);
  const TensorMap expected = trained(one, {.limits = {.norm = 0.1}});
  run_ranks(2, [&](Group& g) {
    for (const bool keep : {false, true}) {
      nn::Gpt model = model_of();
      ShardedParameters shards(model, g, {.keep_whole = keep});
      moved(model);
      check_close(trained(model, {.limits = {.norm = 0.1}, .group = &g, .parts = &shards}), expected, kClose);
    }
    for (const bool rows : {false, true}) {
      nn::Gpt part = model_of(part_of(options(), g));
      TensorParallel split(part, options().transformer, g, {.rows = rows});
      split.load(start);
      moved(part);
      check_close(trained(part, {.limits = {.norm = 0.1}, .parts = &split}), expected, kClose);
    }
  });
}

TEST_CASE("parts: steps that would sum gradients twice, or over ranks that have the same rows, are refused") {
  const auto sharded = [](Group* group, Group& shards_of, bool given) {
    nn::Gpt model = model_of();
    ShardedParameters shards(model, shards_of);
    trained(model, {.group = group, .parts = given ? &shards : nullptr});
  };
  CHECK_THAT(refusal([&](Group& g) { sharded(nullptr, g, true); }), Contains("`group` is not theirs"));
  CHECK_THAT(refusal([&](Group& g) { sharded(nullptr, g, false); }), Contains("this rank has only a part"));
  CHECK_THAT(refusal([&](Group& g) { sharded(&g, g, false); }), Contains("this rank has only a part"));
  CHECK_THAT(refusal(
                 [&](Group& g) {
                   Group half = g.split(g.rank() / 2);
                   sharded(&g, half, true);
                 },
                 4),
             Contains("`group` is not theirs"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt model = model_of();
               ShardedParameters shards(model, g);
               training::differentiate(model, cross_entropy_of, batch_of(0), 1, &g);
             }),
             Contains("this rank has only a part"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt part = model_of(part_of(options(), g));
               TensorParallel split(part, options().transformer, g);
               split.load(model_of().state_dict());
               trained(part, {.group = &g, .parts = &split});
             }),
             Contains("`group` is theirs"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt part = model_of(part_of(options(), g));
               TensorParallel split(part, options().transformer, g);
               split.load(model_of().state_dict());
               trained(part, {});
             }),
             Contains("this rank has only a part"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt model = model_of();
               ShardedParameters shards(model, g), again(model, g);
             }),
             Contains("is a part already"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt model = model_of();
               ShardedParameters shards(model, g);
               training::save_model("part.safetensors", model);
             }),
             Contains("this rank has only a part"));
  CHECK_THAT(refusal([](Group& g) {
               nn::Gpt model = model_of();
               optim::AdamW adamw(model.parameters(), {.lr = 1e-2});
               ShardedParameters shards(model, g);
               Step step(model, adamw, cross_entropy_of, {.group = &g, .parts = &shards});
               step(batch_of(0));
             }),
             Contains("make the optimizer after that"));
  CHECK_THAT(refusal([](Group& g) {
               Raw model;
               ShardedParameters shards(model, g);
               optim::AdamW adamw(model.parameters(), {.lr = 1e-2});
               Step step(model, adamw, [](nn::Module& m, const training::Examples& b) { return mean(m(b.inputs)); },
                         {.group = &g, .parts = &shards});
               step({ones({4, 2, 3}), ones({4, 3})});
             }),
             Contains("reads the part of 'scale'"));
}

TEST_CASE(
    "parts: ranks that share layers have the same batch, random state, rate and other weights, and a whole that was "
    "loaded") {
  const auto refusal_of = [](const std::string& what) {
    return refusal([&](Group& g) {
      const auto rank = static_cast<uint64_t>(g.rank());
      nn::Gpt part = model_of(part_of(options(), g));
      TensorParallel split(part, options().transformer, g);
      if (what != "no load") split.load(model_of().state_dict());
      if (what == "weight") {
        const NoGrad no_grad;
        kernels::fill(detach(*part.find_parameter("head.bias")), static_cast<double>(rank));
      }
      optim::AdamW adamw(part.parameters(), {.lr = 1e-2});
      Step step(part, adamw, cross_entropy_of, {.parts = &split});
      manual_seed(3 + (what == "random state" ? rank : 0));
      step(batch_of(what == "batch" ? rank : 0), what == "rate" && rank == 1 ? 0.5 : 1e-2);
    });
  };
  CHECK_THAT(refusal_of(""), Equals(""));
  CHECK_THAT(refusal_of("no load"), Contains("parts of a model that was not loaded into them"));
  CHECK_THAT(refusal_of("batch"), Contains("rank 1 has another batch") && Contains("the inputs, on rank 0"));
  CHECK_THAT(refusal_of("rate"), Contains("the learning rate, on rank 0"));
  CHECK_THAT(refusal_of("random state"), Contains("the random state, on rank 0"));
  CHECK_THAT(refusal_of("weight"), Contains("rank 1 has another weight or buffer than rank 0: head.bias, on rank 0"));
}

TEST_CASE("parts: data and layers shared at once train what one process trains") {
  nn::Gpt one = model_of();
  const TensorMap start = nn::clone(one.state_dict());
  one.to(DType::f64);
  const TensorMap expected = trained(one, {.limits = {.norm = 0.1}});
  run_ranks(4, [&](Group& g) {
    Group layers = g.split(g.rank() / 2), rows = g.split(g.rank() % 2);
    nn::Gpt part = model_of(part_of(options(), layers));
    TensorParallel split(part, options().transformer, layers);
    split.load(start);
    part.to(DType::f64);
    check_close(trained(part, {.limits = {.norm = 0.1}, .group = &rows, .parts = &split}), expected, kClose);
  });
}

// With a group, the backward runs under a listener. Even then a recomputed decoder block must pass gradients to the
// encoder.
TEST_CASE("parts: an encoder-decoder whose blocks are computed once more") {
  const auto trained_by = [](Group* group, bool again) {
    manual_seed(3);
    nn::EncoderDecoder model({.vocab = kVocab, .context = kTime, .transformer = options().transformer});
    for (const auto& [_, m] : model.named_modules())
      if (auto* stack = dynamic_cast<nn::TransformerStack*>(m)) stack->recompute(again);
    optim::AdamW adamw(model.parameters(), {.lr = 1e-2});
    Step step(model, adamw, cross_entropy_of, {.group = group});
    for (uint64_t i = 0; i < 3; ++i) {
      Generator g{9, i << 32};
      step({randint(1, kVocab, {4, 2 * kTime}, kCpu, g), randint(0, kVocab, {4, kTime}, kCpu, g)});
    }
    return nn::clone(model.state_dict());
  };
  check_close(trained_by(nullptr, true), trained_by(nullptr, false), 0);
  run_ranks(2, [&](Group& g) { check_close(trained_by(&g, true), trained_by(&g, false), 0); });
}
