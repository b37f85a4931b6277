// Training by several ranks equals training by one process: bit by bit if the process takes the rows of each rank as a
// part, and up to rounding if it takes the whole batch. Ranks are threads here; tests/distributed tests the transport.
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/shape.h"
#include "core/memory/bytes.h"
#include "distributed/world.h"
#include "nn/group_norm.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/distributed/normed_stack.h"
#include "tests/support/catch.h"
#include "training/model_options.h"
#include "training/steps/loop.h"
#include "training/training_options.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;

namespace {

constexpr int kVocab = 11, kContext = 8, kWidth = 16;

struct Setting {
  const char* optimizer = "adamw";
  DType dtype = DType::f64;
  int64_t rows = 12;
  StepOptions step = {.limits = {.norm = 0.5}};
  double dropout = 0;
  nn::Precision precision = nn::Precision::full;
  bool ignored = false;  // half of the targets, among them all of the first rows
  int steps = 4;
};

TrainingOptions options_of(const Setting& s) {
  TrainingOptions o;
  o.model = ModelOptions(kGpt, {.width = kWidth, .depth = 2, .heads = 2});
  o.model.fit({{"vocab", kVocab}, {"context", kContext}});
  o.model.transformer().branch.dropout = s.dropout;
  o.model.transformer().precision.products = s.precision;
  o.model.stream().form = streams::Form::crms_norm;
  o.dtype = s.dtype, o.optimizer = &optimizer(s.optimizer), o.lr = 1e-2;
  return o;
}

Examples batch_of(const Setting& s, int64_t step) {
  Generator generator{9, static_cast<uint64_t>(step) << 32};
  const Tensor ids = randint(0, kVocab, {s.rows, kContext + 1}, kCpu, generator);
  Examples e{narrow(ids, 1, 0, kContext).contiguous(), narrow(ids, 1, 1, kContext).contiguous()};
  if (s.ignored)
    for (int64_t i = 0; i < e.targets.numel() / 2; ++i) e.targets.mutable_data<int64_t>()[i] = -100;
  return e;
}

struct Trained {
  std::vector<double> losses;
  TensorMap weights, state;  // of the optimizer, of all ranks
  int64_t state_bytes = 0;   // that the rank keeps
};

// What differs on a rank that is to be found.
struct Fault {
  std::function<void(TrainingOptions&)> options = [](TrainingOptions&) {};
  std::function<void(nn::Module&, int64_t step)> before = [](nn::Module&, int64_t) {};
  std::function<Examples(Examples, int64_t step)> batch = [](Examples e, int64_t) { return e; };
  Objective loss = cross_entropy_of;
  double rate = 1e-2;
  uint64_t seed = 5;
};

Trained trained(const Setting& s, Group* group = nullptr, const Fault& fault = {}, const Trained* from = nullptr) {
  manual_seed(fault.seed);
  TrainingOptions o = options_of(s);
  fault.options(o);
  const auto model = build_model(o, o.model.stream());
  const auto optimizer = build_optimizer(o, model->named_parameters());
  StepOptions options = s.step;
  options.group = group;
  Step step(*model, *optimizer, fault.loss, options);
  Trained result;
  if (from) {
    model->load_state_dict(from->weights);
    optimizer->load_state_dict(group ? own_state(*group, optimizer->parameters(), from->state) : from->state);
  }
  for (int64_t t = from ? std::ssize(from->losses) : 0; t < s.steps; ++t) {
    fault.before(*model, t);
    result.losses.push_back(step(fault.batch(batch_of(s, t), t), fault.rate).loss);
  }
  for (const auto& [name, x] : model->state_dict()) result.weights.add(name, clone(detach(x)));
  for (const auto& [name, x] : optimizer->state_dict()) result.state_bytes += byte_size(x);
  const TensorMap state = group ? state_of_ranks(*group, optimizer->state_dict()) : optimizer->state_dict();
  for (const auto& [name, x] : state) result.state.add(name, clone(x));
  return result;
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(bytes_of(a), bytes_of(b), static_cast<size_t>(byte_size(a))) == 0;
}

// The training of several ranks. Checks that all have the same losses and weights.
Trained trained_by(int ranks, const Setting& s) {
  std::vector<Trained> all(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](Group& g) { all[static_cast<size_t>(g.rank())] = trained(s, &g); });
  for (const Trained& t : all) {
    CHECK(t.losses == all[0].losses);
    for (const auto& [name, x] : t.weights) CHECK(same_numbers(x, all[0].weights.at(name)));
  }
  return all[0];
}

// The greatest difference of a weight, in eps of the largest weight.
double off(const Trained& a, const Trained& b, DType dtype) {
  double most = 0, largest = 0;
  for (const auto& [name, x] : a.weights) {
    const std::vector<double> u = x.to(DType::f64).to_vector<double>(),
                              v = b.weights.at(name).to(DType::f64).to_vector<double>();
    for (size_t i = 0; i < u.size(); ++i)
      most = std::max(most, std::abs(u[i] - v[i])), largest = std::max(largest, std::abs(v[i]));
  }
  return most / largest / epsilon(dtype);
}

void check_bit_equal(int ranks, Setting s) {
  const Trained several = trained_by(ranks, s);
  s.step.accumulate = ranks;
  const Trained one = trained(s);
  for (size_t i = 0; i < one.losses.size(); ++i)  // added in another order than their parts
    CHECK(std::abs(one.losses[i] - several.losses[i]) <= ranks * epsilon(s.dtype) * one.losses[i]);
  for (const auto& [name, x] : one.weights) {
    INFO(name);
    CHECK(same_numbers(x, several.weights.at(name)));
  }
}

}  // namespace

TEST_CASE("ranks: their training equals one process with the same number of parts, bit by bit") {
  for (const OptimizerRow& row : optimizers()) {
    INFO(row.name);
    check_bit_equal(2, {.optimizer = row.name});
  }
  for (const int ranks : {1, 3, 4, 6, 12}) check_bit_equal(ranks, {});
  check_bit_equal(4, {.dtype = DType::f32});
  check_bit_equal(4, {.dtype = DType::f32, .precision = nn::Precision::bf16});
  check_bit_equal(4, {.ignored = true});  // two ranks have no target that counts
  check_bit_equal(2, {.step = {.limits = {.l2 = 0.1, .value = 0.01, .norm = 0.02}}});
}

TEST_CASE("ranks: that share the optimizer's state have the same bits, and a share of the memory") {
  for (const OptimizerRow& row : optimizers()) {
    INFO(row.name);
    check_bit_equal(3, {.optimizer = row.name, .step = {.limits = {.norm = 0.5}, .zero = 1}});
  }
  // AdamW keeps two numbers a weight, 8 bytes each, and the steps of each parameter. The largest share is at most a
  // mean one and the largest parameter.
  Setting s{.step = {.zero = 1}};
  constexpr int kRanks = 4;
  std::vector<int64_t> bytes(kRanks);
  Trained half;
  s.steps = 2;
  run_ranks(kRanks, [&](Group& g) {
    const Trained t = trained(s, &g);
    bytes[static_cast<size_t>(g.rank())] = t.state_bytes;
    if (g.rank() == 0) half = t;
  });
  const Trained one = trained({.step = {.accumulate = kRanks}, .steps = 2});
  int64_t largest = 0;
  for (const auto& [_, x] : one.weights) largest = std::max(largest, 16 * x.numel());
  for (int64_t b : bytes) CHECK(b <= one.state_bytes / kRanks + largest + 1000);
  CHECK(half.state.size() == one.state.size());
  for (const auto& [name, x] : one.state) CHECK(same_numbers(x, half.state.at(name)));

  // From there 2 ranks go on, or 12, or one process. AdamW divides by a gradient's own size: of one that is 1e-5 of the
  // largest, an eps of that is 1e5 eps of a step.
  s.steps = 4;
  const Trained whole = trained({.step = {.accumulate = 2}});
  for (const int ranks : {1, 2, 12})
    run_ranks(ranks, [&](Group& g) {
      const Trained t = trained(s, &g, {}, &half);
      check(off(t, whole, DType::f64) < 1e5, "on ", ranks, " ranks: ", off(t, whole, DType::f64));
    });
  CHECK_THROWS_WITH(trained({.step = {.zero = 2}}), Contains("zero 2, expected 0 or 1"));
}

TEST_CASE("ranks: rank_invariant has the same bits on any number of ranks") {
  for (const Setting& base : {Setting{}, Setting{.dtype = DType::f32}, Setting{.optimizer = "sgd", .ignored = true}}) {
    Setting s = base;
    s.step.accumulate = 6;
    const Trained one = trained(s);
    s.step.rank_invariant = true;
    for (const int ranks : {1, 2, 3, 6}) {
      const Trained several = trained_by(ranks, s);
      CHECK(several.losses == one.losses);
      for (const auto& [name, x] : one.weights) CHECK(same_numbers(x, several.weights.at(name)));
    }
  }
  CHECK_THROWS_WITH(trained_by(4, {.step = {.accumulate = 6, .rank_invariant = true}}),
                    Contains("6 micro-batches on 4 ranks with rank_invariant, expected the same number on each"));
}

TEST_CASE("ranks: up to rounding it is the training of a single process with the whole batch") {
  // SGD: an error of a gradient, of some eps, reaches the weights times the rate, and grows little in four steps.
  const Setting plain{.optimizer = "sgd"};
  const auto check_off = [](int ranks, const Setting& s) {
    const double most = off(trained_by(ranks, s), trained(s), s.dtype);
    INFO(ranks << " ranks, " << s.rows << " rows: " << most);
    CHECK(most < 100);
  };
  check_off(4, plain);
  check_off(5, plain);  // 2, 2, 3, 2 and 3 rows
  Setting few = plain;
  few.rows = 3;
  check_off(5, few);  // two ranks have none
  Setting ignored = plain;
  ignored.ignored = true;
  check_off(3, ignored);
  Setting parts = plain;
  parts.step.accumulate = 2;
  check_off(3, parts);
  // An objective of a sum and its weight, which differs from rank to rank.
  const Fault sums{.loss = [](nn::Module& m, const Examples& b) {
    return cross_entropy_sum(m(b.inputs), b.targets, {.ignore_index = 1});
  }};
  const Trained one = trained(plain, nullptr, sums);
  for (const auto& [ranks, accumulate, whole] : {std::tuple{3, 1, false}, {5, 1, false}, {3, 2, false}, {2, 2, true}}) {
    Setting s = plain;
    s.step.accumulate = accumulate, s.step.rank_invariant = whole;
    std::vector<Trained> all(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](Group& g) { all[static_cast<size_t>(g.rank())] = trained(s, &g, sums); });
    for (const Trained& t : all) {
      CHECK(off(t, one, s.dtype) < 100);
      for (size_t i = 0; i < one.losses.size(); ++i)
        CHECK(std::abs(t.losses[i] - one.losses[i]) < 100 * epsilon(s.dtype) * one.losses[i]);
    }
  }
  Setting dropped = plain;
  dropped.dropout = 0.3;
  check_off(3, dropped);  // each draws for 4 x 8 x 16 numbers
  dropped.rows = 16;
  check_off(4, dropped);
  dropped.step.accumulate = 2;
  check_off(2, dropped);
  // If ranks have different numbers of rows, each rank draws other numbers than one process does, and than other ranks.
  dropped.step.accumulate = 1;
  CHECK(off(trained_by(5, dropped), trained(dropped), dropped.dtype) > 1e6);
}

TEST_CASE("ranks: a backward pass may call the group while gradients are sent") {
  for (const int ranks : {2, 3}) CHECK_NOTHROW(run_ranks(ranks, test::check_normed_stack, 120));
}

TEST_CASE("ranks: if all targets are ignored the loss is 0 and no weight moves") {
  for (const int64_t accumulate : {1, 2}) {
    Setting none{.optimizer = "sgd", .steps = 2};
    none.step.accumulate = accumulate;
    const Fault all{.batch = [](Examples e, int64_t) { return Examples{e.inputs, full_like(e.targets, -100)}; }};
    std::vector<Trained> of(3);
    run_ranks(3, [&](Group& g) { of[static_cast<size_t>(g.rank())] = trained(none, &g, all); });
    none.steps = 0;
    const Trained start = trained(none);
    for (const Trained& t : of) {
      CHECK(t.losses == std::vector<double>{0, 0});
      for (const auto& [name, x] : t.weights) CHECK(same_numbers(x, start.weights.at(name)));
    }
  }
}

TEST_CASE("ranks: a rank whose training differs is found, and the difference is named") {
  const auto found = [](const Fault& fault, const std::string& says, Setting s = {}) {
    INFO(says);
    CHECK_THROWS_WITH(run_ranks(3, [&](Group& g) { trained(s, &g, g.rank() == 1 ? fault : Fault{}); }),
                      Contains("rank 1") && Contains(says));
  };
  const std::string batch = "has another batch, rate, random state, mode or weight than rank 0: ";
  const std::string advice = "; give all ranks the same batch, rate and seed";
  TrainingOptions options = options_of({});
  const std::vector<nn::NamedParameter> parameters = build_model(options, options.model.stream())->named_parameters();
  const Setting dropped{.dropout = 0.1};
  found({.options = [](TrainingOptions& o) { o.model.transformer().eps = 1e-3; }}, "another loss of the same rows");
  found({.options = [](TrainingOptions& o) { o.model.transformer().branch.dropout = 0.2; }},
        "another loss of the same rows", dropped);
  found({.options = [](TrainingOptions& o) { o.model.transformer().heads = 4; }}, "another ");
  found({.options = [](TrainingOptions& o) { o.optimizer = &optimizer("lion"); }}, "another model or optimizer");
  found({.options = [](TrainingOptions& o) { o.weight_decay = 0.5; }},
        "another weight or buffer than rank 0: " + parameters[0].name);
  found({.loss = smoothed_cross_entropy(0.1)}, "another loss of the same rows");
  found({.rate = 2e-2}, batch + "the learning rate, on rank 0 f64 [1]" + advice);
  found({.seed = 6}, batch + "the random state");
  found({.batch =
             [](Examples e, int64_t t) {
               return t == 2 ? Examples{flip(e.inputs, {0}), e.targets} : e;
             }},
        batch + "the inputs");
  found({.batch =
             [](Examples e, int64_t t) {
               return t == 3 ? Examples{e.inputs, flip(e.targets, {0})} : e;
             }},
        batch + "the targets");
  found({.before = [](nn::Module& model, int64_t t) { t == 2 ? model.eval() : void(); }}, batch + "what trains",
        dropped);
  // The two halves of a step.
  const auto halves = [](const std::string& says, const Fault& fault, double rate) {
    CHECK_THROWS_WITH(run_ranks(3,
                                [&](Group& g) {
                                  manual_seed(5);
                                  TrainingOptions o = options_of({});
                                  const auto model = build_model(o, o.model.stream());
                                  const auto optimizer = build_optimizer(o, model->named_parameters());
                                  Step step(*model, *optimizer, cross_entropy_of, {.group = &g});
                                  if (g.rank() == 1) fault.before(*model, 0);
                                  step.differentiate(batch_of({}, 0));
                                  step.update(g.rank() == 1 ? rate : 1e-2);
                                }),
                      Contains(says));
  };
  halves("rank 1 has another rate than rank 0: 0.01000000000000001, on rank 0 0.01", {}, 1e-2 * (1 + 1e-15));
  halves("rank 1 has another weight or buffer than rank 0: " + parameters[3].name + ", on rank 0 f",
         {.before =
              [](nn::Module& model, int64_t) {
                const NoGrad no_grad;
                copy_into(model.parameters()[3], model.parameters()[3] * 2.0);
              }},
         1e-2);
  Setting longer;
  longer.steps = 60;  // more than there are parameters
  found({.before =
             [](nn::Module& model, int64_t t) {
               const NoGrad no_grad;
               if (t == 3) copy_into(model.parameters()[7], model.parameters()[7] * (1 + 1e-15));
             }},
        batch + parameters[7].name + ", on rank 0", longer);
}

namespace {

struct NormedNet : nn::Module {
  nn::Linear& fc1 = add("fc1", nn::Linear(3, 5));
  nn::BatchNorm& norm1 = add("norm1", nn::BatchNorm(5));
  nn::BatchNorm& norm2 = add("norm2", nn::BatchNorm(5, {.affine = false}));
  Tensor forward(const Tensor& x) override { return norm2(tanh(norm1(fc1(x)))); }
};

// The state of a net with batch norms, [11 or 12, 4, 3] -> [.., 4, 5], after three steps, the same on all ranks.
TensorMap normed_by(int ranks, StepOptions options) {
  std::vector<TensorMap> states(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](Group& g) {
    manual_seed(1);
    NormedNet net;
    net.to(DType::f64);
    optim::Sgd sgd(net.parameters(), {.lr = 0.1});
    StepOptions own = options;
    own.group = &g;
    Step step(
        net, sgd, [](nn::Module& m, const Examples& e) { return mse_loss(m(e.inputs), e.targets); }, own);
    Generator draws{3, 0};
    for (int t = 0; t < 3; ++t) {
      const int64_t rows = options.accumulate > 1 ? 12 : 11;
      step({randn({rows, 4, 3}, {DType::f64}, draws), randn({rows, 4, 5}, {DType::f64}, draws)});
    }
    states[static_cast<size_t>(g.rank())] = nn::clone(net.state_dict());
  });
  for (const TensorMap& state : states)
    for (const auto& [name, x] : state) CHECK(same_numbers(x, states[0].at(name)));
  return states[0];
}

}  // namespace

TEST_CASE("ranks: the statistics of batch norms are over the rows of all ranks") {
  for (const int64_t accumulate : {1, 2}) {
    const TensorMap one = normed_by(1, {.accumulate = accumulate});
    for (const int ranks : {2, 3, 4})  // 11 rows: 5 and 6; 3, 4 and 4; 2, 3, 3 and 3
      for (const auto& [name, x] : normed_by(ranks, {.accumulate = accumulate})) {
        INFO(name << ", " << ranks << " ranks, accumulate " << accumulate);
        // Sums of at most 48 terms of size 1 in some 20 operations; three steps.
        const std::vector<double> found = x.to_vector<double>(), expected = one.at(name).to_vector<double>();
        for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1000 * epsilon(DType::f64));
      }
  }
}

TEST_CASE("ranks: options that a step of several ranks lacks are refused") {
  CHECK_THROWS_WITH(normed_by(2, {.accumulate = 2, .rank_invariant = true}),
                    Contains("batch norm with rank_invariant"));
  CHECK_THROWS_WITH(normed_by(12, {}),
                    Contains("11 rows in a part of the batch on 12 ranks with batch norm, expected some"));
  run_ranks(2, [](Group& g) {
    nn::Linear model(3, 2), other(3, 2);
    std::vector<Tensor> all = model.parameters();
    all.push_back(other.parameters()[0]);
    optim::Sgd sgd(all, {.lr = 0.1});
    Step step(model, sgd, [](nn::Module& m, const Examples& e) { return mse_loss(m(e.inputs), e.targets); },
              {.group = &g});
    try {
      step({ones({4, 3}), ones({4, 2})});
    } catch (const Error& e) {
      return check(std::string(e.what()) ==
                       "step: a parameter of sgd of shape [2, 3] is none of the model's, whose gradients the ranks sum",
                   e.what());
    }
    check(false, "nothing was thrown");
  });
}
