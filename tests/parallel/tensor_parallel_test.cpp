// A model split over ranks equals the whole model: logits, gradients of every parameter, trainings. Ranks are threads.
#include "distributed/parallel/tensor_parallel.h"

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/methods.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "distributed/parallel/collectives.h"
#include "distributed/world.h"
#include "nn/encoder_decoder.h"
#include "nn/residual/pre_norm.h"
#include "nn/vit.h"
#include "optim/adam.h"
#include "streams/transformer.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "training/steps/step.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;
using parallel::TensorParallel, parallel::part_of;
using streams::Form;

namespace {

constexpr int64_t kVocab = 11, kTime = 8;

struct Setting {
  nn::TransformerOptions transformer = {};
  streams::StreamOptions on = {};
  bool rows = false, tied = false;
  int64_t depth = 2;

  nn::GptOptions options() const {
    nn::GptOptions o{.vocab = kVocab, .context = kTime, .tied = tied, .transformer = transformer};
    o.transformer.width = 12, o.transformer.depth = depth, o.transformer.heads = 4, o.transformer.head_width = 4;
    o.transformer.mlp_width = 20;
    o.transformer.norm = streams::norm_of(on.form);
    return o;
  }
};

training::Examples batch_of(uint64_t step) {
  Generator g{9, step << 32};
  const Tensor ids = randint(0, kVocab, {3, kTime + 1}, kCpu, g);
  return {narrow(ids, 1, 0, kTime).contiguous(), narrow(ids, 1, 1, kTime).contiguous()};
}

// In f64, with random parameters: no gain is 1, no bias 0.
nn::Gpt whole_model(const Setting& s) {
  manual_seed(3);
  nn::Gpt model = streams::make<nn::Gpt>(s.options(), s.on);
  model.to(DType::f64);
  const NoGrad no_grad;
  for (const Tensor& p : model.parameters()) copy_into(p, p + 0.3 * randn(p.shape(), p.options()));
  return model;
}

struct Seen {
  std::vector<double> losses, norms;
  TensorMap gradients, weights;  // of the whole model; gradients are of the first step
};

Seen trained(nn::Gpt& model, TensorParallel* split, double clip) {
  optim::AdamW adamw(model.parameters(), {.lr = 1e-3, .eps = 1e-4});  // an eps above entries that are rounding noise
  training::StepOptions options{.limits = {.norm = clip}};
  options.parts = split;
  training::Step step(model, adamw, training::cross_entropy_of, options);
  Seen seen;
  manual_seed(7);
  for (uint64_t i = 0; i < 3; ++i) {
    seen.losses.push_back(step.differentiate(batch_of(i)));
    if (i == 0) {
      TensorMap gradients;
      for (const nn::NamedParameter& p : model.named_parameters()) gradients.add(p.name, p.tensor.grad());
      seen.gradients = split ? split->whole(gradients) : nn::clone(gradients);
    }
    seen.norms.push_back(step.update().value());
  }
  seen.weights = split ? split->whole() : nn::clone(model.state_dict());
  return seen;
}

// Tolerance relative to the largest entry, for sums of at most a few hundred terms through two blocks.
constexpr double kClose = 1e-12;

void check_close(const TensorMap& found, const TensorMap& expected) {
  check(found.size() == expected.size(), "other names");
  for (const auto& [name, x] : expected) {
    const double size = amax(abs(x)).item(), off = amax(abs(*found.find(name) - x)).item();
    check(off <= kClose * std::max(size, 1e-3), name, " is ", off, " off, the largest entry is ", size);
  }
}

void check_split(const Setting& s, int ranks) {
  nn::Gpt model = whole_model(s);
  const TensorMap start = nn::clone(model.state_dict());
  const Seen one = trained(model, nullptr, 0.05);
  run_ranks(ranks, [&](Group& g) {
    manual_seed(3);
    nn::Gpt part = streams::make<nn::Gpt>(part_of(s.options(), g), s.on);
    part.to(DType::f64);
    TensorParallel split(part, s.options().transformer, g, {.rows = s.rows});
    split.load(start);
    for (const auto& [name, x] : split.whole())
      check(same_bytes(x, *start.find(name)), name, " is not what was loaded");
    const Seen seen = trained(part, &split, 0.05);
    for (size_t i = 0; i < one.losses.size(); ++i) {
      check(std::abs(seen.losses[i] - one.losses[i]) < kClose * one.losses[i], "loss ", seen.losses[i], one.losses[i]);
      check(std::abs(seen.norms[i] - one.norms[i]) < 10 * kClose * one.norms[i], "norm ", seen.norms[i], one.norms[i]);
    }
    check_close(seen.gradients, one.gradients);
    check_close(seen.weights, one.weights);
    TensorMap common;  // the same bits on every rank
    for (const auto& [name, x] : split.own())
      if (!split.is_part(name)) common.add(name, x);
    g.check_same(common, "weight that every rank has");
  });
}

}  // namespace

TEST_CASE("tensor parallel: a part on each rank is the whole model, in every form") {
  for (const Form form : streams::all_forms())
    for (const bool rows : {false, true})
      for (const int ranks : {1, 2, 4}) {
        INFO(name_of(form) << ", rows " << rows << ", " << ranks << " ranks");
        CHECK_NOTHROW(
            check_split({.transformer = {.affine = form != Form::none}, .on = {.form = form}, .rows = rows}, ranks));
      }
}

TEST_CASE(
    "tensor parallel: what is sent is twice a branch's output and twice what a branch reads, whatever shares the "
    "rows") {
  for (const Form form : {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::crms_isometric})
    for (const bool rows : {false, true})
      run_ranks(2, [&](Group& g) {
        const Setting s{.on = {.form = form}, .rows = rows};
        nn::Gpt part = streams::make<nn::Gpt>(part_of(s.options(), g), s.on);
        TensorParallel split(part, s.options().transformer, g, {.rows = rows});
        const training::Examples e = batch_of(0);
        const int64_t before = g.bytes_sent();
        const Tensor loss = training::cross_entropy_of(part, e);
        const int64_t forward = g.bytes_sent() - before;
        const int64_t numbers = 3 * kTime * streams::Stream(s.on, 12).stored_width(), branches = 2 * 2;
        // On 2 ranks each all_reduce sends 2 / 2 of the rows, a gather or scatter half as much. One gather ends the
        // stack.
        check(forward == 4 * numbers * branches + (rows ? 4 * numbers / 2 : 0), forward, " bytes forward");
        backward(loss);
        const int64_t back = g.bytes_sent() - before - forward;
        const int64_t biases = 2 * 2 * 12;
        check(back == 4 * numbers * branches + (rows ? 4 * numbers / 2 + 4 * biases : 0), back, " bytes backward");
      });
}

TEST_CASE("tensor parallel: functions over ranks have the derivatives of the whole") {
  run_ranks(3, [&](Group& g) {
    Generator random{5, 0};
    const Tensor whole = require_grad(randn({2, 6, 4}, {DType::f64}, random)),
                 w = randn({2, 6, 4}, {DType::f64}, random);
    for (const int dim : {1, -2}) {
      set_grad(whole, {});
      const Tensor part = parallel::own_part(whole, dim, g);
      check(same_bytes(part, narrow(whole, 1, 2 * g.rank(), 2)), "own_part");
      const Tensor back = parallel::whole_of_parts(part, dim, g);
      check(same_bytes(back, whole), "whole_of_parts");
      backward(sum(back * w));
      check(same_bytes(whole.grad(), w), "gradient of the whole");
    }
    // Every rank uses the gathered rows differently, times r + 1, and has a part of the sum.
    set_grad(whole, {});
    const double own = g.rank() + 1;
    const Tensor gathered = parallel::gathered_parts(parallel::own_part(whole, 1, g), 1, g);
    const Tensor summed = parallel::whole_of_parts(parallel::sum_of_own_part(gathered * own, 1, g), 1, g);
    check(amax(abs(summed - whole * 6)).item() < 1e-14, "sum_of_own_part");
    backward(sum(summed * w));
    check(amax(abs(whole.grad() - w * 6)).item() < 1e-14, "gradient of rows that all use");
    set_grad(whole, {});
    const Tensor total = parallel::sum_of_parts(parallel::shared_by_ranks(whole, g) * own, g);
    backward(sum(total * w));
    check(amax(abs(total - whole * 6)).item() < 1e-14 && amax(abs(whole.grad() - w * 6)).item() < 1e-14, "sums");
  });
}

TEST_CASE("tensor parallel: what does not divide, or sees what other ranks have, is refused") {
  const auto refused = [](const Setting& s, const char* line, int ranks = 2) {
    CHECK_THROWS_WITH(check_split(s, ranks), Contains(line));
  };
  refused({}, "4 heads, 4 of keys and values and 20 hidden entries on 3 ranks", 3);
  refused({.transformer = {.positions = nn::Positions::alibi}}, "ALiBi");
  refused({.transformer = {.connection = nn::kSubLn}}, "inner norms");
  refused({.transformer = {.branch = {.layer_scale = 0.1}}}, "layer scale");
  refused({.transformer = {.branch = {.dropout = 0.1}}, .rows = true},
          "dropout is not supported if ranks share the rows");
  CHECK_THROWS_WITH(
      run_ranks(2,
                [](Group& g) {
                  nn::Gpt model = streams::make<nn::Gpt>(Setting().options());
                  TensorParallel(model, Setting().options().transformer, g);
                }),
      Contains("'blocks.0.attn.qkv.weight' has shape [48, 12], expected 24 along dimension 0, this rank's part"));
  const auto step_of = [](bool loads, bool shares) {
    run_ranks(2, [&](Group& g) {
      nn::Gpt part = streams::make<nn::Gpt>(part_of(Setting().options(), g));
      TensorParallel split(part, Setting().options().transformer, g);
      if (loads) split.load(streams::make<nn::Gpt>(Setting().options()).state_dict());
      optim::AdamW adamw(part.parameters());
      training::Step(part, adamw, training::cross_entropy_of, {.group = shares ? &g : nullptr, .parts = &split});
    });
  };
  CHECK_NOTHROW(step_of(true, false));
  CHECK_THROWS_WITH(step_of(false, false), Contains("parts of a model that was not loaded into them"));
  CHECK_THROWS_WITH(step_of(true, true), Contains("`group` is theirs"));
  CHECK_THROWS_WITH(run_ranks(3,
                              [](Group& g) {
                                parallel::own_part(zeros({2, 8}), 1, g);
                              }),
                    Contains("dimension 1 of shape [2, 8] for 3 ranks, expected one that they share evenly"));
}
