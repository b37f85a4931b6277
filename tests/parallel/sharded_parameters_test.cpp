// Ranks that shard gradients and parameters by rows train the same weights, bit by bit, as ranks without sharding.
#include "distributed/parallel/sharded_parameters.h"

#include <filesystem>
#include <functional>

#include "autograd/grad_mode.h"
#include "autograd/methods.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/memory/allocator.h"
#include "core/memory/bytes.h"
#include "distributed/world.h"
#include "io/safetensors.h"
#include "nn/print.h"
#include "optim/adam.h"
#include "optim/trust_ratio.h"
#include "streams/plan.h"
#include "streams/transformer.h"
#include "tests/support/catch.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"
#include "training/model_file.h"
#include "training/run/saved_training.h"
#include "training/steps/step.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;
using parallel::ShardedParameters;
using streams::Form;

namespace {

constexpr int64_t kVocab = 11, kTime = 8;
enum class Stage { none, two, three, recomputed };

struct Setting {
  nn::TransformerOptions transformer = {};
  streams::StreamOptions on = {};
  bool tied = false;
  int64_t rows = 12, accumulate = 1;
  double clip = 0;
  DType dtype = DType::f32;
};

// 10 rows of fc1 and 11 of the table: 3 or 4 ranks cannot share them evenly.
nn::Gpt model_of(const Setting& s) {
  nn::GptOptions o{.vocab = kVocab, .context = kTime, .tied = s.tied, .transformer = s.transformer};
  o.transformer.width = 12, o.transformer.depth = 2, o.transformer.heads = 2, o.transformer.mlp_width = 10;
  manual_seed(3);
  nn::Gpt model = streams::make<nn::Gpt>(o, s.on);
  model.to(s.dtype);
  return model;
}

training::Examples batch_of(const Setting& s, uint64_t step) {
  Generator g{9, step << 32};
  const Tensor ids = randint(0, kVocab, {s.rows, kTime + 1}, kCpu, g);
  return {narrow(ids, 1, 0, kTime).contiguous(), narrow(ids, 1, 1, kTime).contiguous()};
}

struct Seen {
  std::vector<double> losses;
  TensorMap weights, state;
};

Seen trained(const Setting& s, Group& g, Stage stage, const Seen* from = nullptr, uint64_t first = 0) {
  nn::Gpt model = model_of(s);
  std::optional<ShardedParameters> shards;
  if (stage != Stage::none)
    shards.emplace(model, g, parallel::ShardedParametersOptions{.keep_whole = stage == Stage::two});
  nn::recompute(model, stage == Stage::recomputed);
  optim::AdamW adamw(model.parameters(), {.lr = 1e-2});
  if (from && shards) shards->load(from->weights), shards->load_state(adamw, from->state);
  if (from && !shards) model.load_state_dict(from->weights), adamw.load_state_dict(from->state);
  training::Step step(
      model, adamw, training::cross_entropy_of,
      {.limits = {.norm = s.clip}, .accumulate = s.accumulate, .group = &g, .parts = shards ? &*shards : nullptr});
  Seen seen;
  manual_seed(7);
  for (uint64_t i = first; i < first + 3; ++i) seen.losses.push_back(step(batch_of(s, i)).loss);
  seen.weights = shards ? shards->whole() : nn::clone(model.state_dict());
  seen.state = shards ? shards->whole_state(adamw) : nn::clone(adamw.state_dict());
  if (shards) {
    shards->gather();
    if (g.rank() == 0) {  // without the other ranks
      const NoGrad no_grad;
      nn::Gpt whole = model_of(s);
      model.eval(), whole.eval();
      whole.load_state_dict(seen.weights);
      check(same_bytes(model(batch_of(s, 0).inputs), whole(batch_of(s, 0).inputs)), "logits of what was gathered");
    }
    shards->release();
    for (const nn::NamedParameter& p : model.named_parameters())
      if (p.tensor.rank() == 2) {
        check(p.tensor.size(0) == (seen.weights.find(p.name)->size(0) + g.size() - 1) / g.size(), p.name,
              " is no share");
        check(p.tensor.grad().shape() == p.tensor.shape(), p.name, " has a whole gradient");
      }
  }
  return seen;
}

void check_same_bits(const TensorMap& found, const TensorMap& expected) {
  check(found.size() == expected.size(), "other names");
  std::string other;
  for (const auto& [name, x] : expected)
    if (!same_bytes(*found.find(name), x))
      other += text(name, ' ', amax(abs(*found.find(name) - x).to(DType::f64)).item(), "; ");
  check(other.empty(), "other bits: ", other);
}

void check_stages(const Setting& s, int ranks) {
  Seen all, later;
  run_ranks(ranks, [&](Group& g) {
    Seen seen = trained(s, g, Stage::none), then = trained(s, g, Stage::none, &seen, 3);
    if (g.rank() == 0) all = std::move(seen), later = std::move(then);
  });
  for (const Stage stage : {Stage::two, Stage::three, Stage::recomputed})
    run_ranks(ranks, [&](Group& g) {
      const Seen seen = trained(s, g, stage), then = trained(s, g, stage, &all, 3);
      check(seen.losses == all.losses && then.losses == later.losses, "other losses");
      check_same_bits(seen.weights, all.weights);
      check_same_bits(seen.state, all.state);
      check_same_bits(then.weights, later.weights);
    });
}

}  // namespace

TEST_CASE("sharded parameters: the same bits as ranks that have all, in every form") {
  for (const Form form : streams::all_forms())
    for (const int ranks : {1, 2, 3, 4}) {
      INFO(name_of(form) << " on " << ranks);
      Setting s{.transformer = {.affine = form != Form::none, .norm_bias = false}, .on = {.form = form}};
      s.transformer.norm = streams::norm_of(form);
      CHECK_NOTHROW(check_stages(s, ranks));
    }
}

TEST_CASE("sharded parameters: the same bits with other models and rows") {
  CHECK_NOTHROW(check_stages({.on = {.form = Form::crms_norm}, .rows = 7, .dtype = DType::f64}, 3));
  CHECK_NOTHROW(check_stages({.on = {.form = Form::crms_norm, .storage = streams::Stored::mapped}}, 2));
  CHECK_NOTHROW(check_stages(
      {.transformer = {.activation = nn::Activation::swiglu, .branch = {.dropout = 0.1, .layer_scale = 0.5}},
       .on = {.form = Form::rms_norm}},
      2));
  CHECK_NOTHROW(check_stages(
      {.transformer = {.precision = {.products = nn::Precision::bf16}}, .on = {.form = Form::crms_isometric}}, 2));
  CHECK_NOTHROW(check_stages({.dtype = DType::bf16}, 2));
}

// If a parameter is read twice (a tied table, a matrix that includes a norm's bias), each gradient is summed over the
// ranks before the two are added.
TEST_CASE("sharded parameters: equal up to rounding with clipping, accumulation, or a parameter that is read twice") {
  for (const Setting& s :
       {Setting{.on = {.form = Form::crms_norm}, .clip = 0.1}, Setting{.accumulate = 3}, Setting{.tied = true},
        Setting{.transformer = {.affine = true}, .on = {.form = Form::crms_isometric}}})
    run_ranks(3, [&](Group& g) {
      Setting of = s;
      of.dtype = DType::f64;
      const Seen all = trained(of, g, Stage::none);
      for (const Stage stage : {Stage::two, Stage::three, Stage::recomputed}) {
        const Seen seen = trained(of, g, stage);
        for (const auto& [name, x] : all.state)  // AdamW's sums of gradients and of their squares
          if (name.ends_with("exp_avg")) {
            const double off = amax(abs(*seen.state.find(name) - x)).item(), size = amax(abs(x)).item();
            check(off <= 1e-12 * std::max(size, 1e-3), name, " is ", off, " off, the largest is ", size);
          }
      }
    });
}

TEST_CASE("sharded parameters: an optimizer that looks at whole tensors, and ranks without rows, are refused") {
  CHECK_THROWS_WITH(run_ranks(2,
                              [](Group& g) {
                                nn::Gpt model = model_of({});
                                ShardedParameters shards(model, g);
                                optim::Lamb lamb(model.parameters(), {.lr = 1e-2});
                                training::Step(model, lamb, training::cross_entropy_of,
                                               {.group = &g, .parts = &shards});
                              }),
                    Contains("lamb needs whole tensors, but each rank has only parts"));
  CHECK_THROWS_WITH(run_ranks(2,
                              [](Group& g) {
                                nn::Gpt model = model_of({});
                                ShardedParameters shards(model, g);
                                optim::AdamW adamw(model.parameters());
                                training::Step(model, adamw, training::cross_entropy_of, {.parts = &shards});
                              }),
                    Contains("`group` is not theirs"));
  CHECK_THROWS_WITH(
      run_ranks(4, [](Group& g) { trained({.rows = 3}, g, Stage::three); }),
      Contains("3 rows in a part of the batch on 4 ranks that have parts of the model, expected some on each"));
}

TEST_CASE("sharded parameters: no state dict, file or copy holds a rank's part as if it were the model") {
  const TempFolder f;
  run_ranks(2, [&](Group& g) {
    for (const bool keep_whole : {true, false}) {
      const nn::Gpt before = model_of({});
      nn::Gpt model = model_of({});
      ShardedParameters shards(model, g, {.keep_whole = keep_whole});
      optim::AdamW adamw(model.parameters());
      const std::string path = f / text("rank", g.rank());
      training::BestLoss best;
      const std::function<void()> ways[] = {[&] { save_safetensors(path, model.state_dict()); },
                                            [&] { (void)nn::clone(model.state_dict()); },
                                            [&] { training::save_model(path, model); },
                                            [&] { (void)nn::clone(model); },
                                            [&] { training::SavedTraining(path, model, adamw, best); },
                                            [&] { (void)streams::plan_of(model); }};
      for (const auto& way : ways) {
        const std::string said = test::thrown(way);
        check(said.find("this rank has only a part of 'token.weight'") != said.npos, &way - ways, " said '", said, "'");
      }
      check(!std::filesystem::exists(path), "a file was written");
      check(nn::to_string(model).find("token") != std::string::npos, nn::to_string(model));
      const TensorMap own = shards.own(), whole = shards.whole();
      for (const auto& [name, x] : before.state_dict()) {
        check(same_bytes(whole.at(name), x), name, " of whole() is another");
        const int64_t rows = x.rank() < 2 ? -1 : (x.size(0) + 1) / 2;
        check(rows < 0 || own.at(name).size(0) == rows, name, " has ", own.at(name).shape(), ", expected ", rows,
              " rows");
      }
    }
  });
}
