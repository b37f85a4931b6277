// In its first two steps a training compares the loss of some rows with the loss that micro-batches or ranks combine
// from parts of these rows. An objective that is no mean over rows is refused; all others train.
#include "training/steps/loss_checks.h"

#include <cmath>
#include <optional>

#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "distributed/parallel/collectives.h"
#include "distributed/parallel/sharded_parameters.h"
#include "distributed/world.h"
#include "nn/gpt.h"
#include "nn/linear.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using distributed::Group, distributed::run_ranks;

namespace {

constexpr int kVocab = 11, kContext = 8;

struct Setting {
  DType dtype = DType::f64;
  int64_t rows = 12;
  int accumulate = 1, ranks = 1;
  double dropout = 0;
  nn::Precision products = nn::Precision::full;
  uint64_t seed = 1;
  bool shared = false;  // ranks share the parameters
};

// The loss of the first of two steps of a small GPT.
double first_loss(const Objective& objective, const Setting& s) {
  std::vector<double> losses(static_cast<size_t>(s.ranks));
  run_ranks(s.ranks, [&](Group& group) {
    manual_seed(s.seed);
    nn::GptOptions o{.vocab = kVocab, .context = kContext, .transformer = {.width = 16, .depth = 2, .heads = 2}};
    o.transformer.branch.dropout = s.dropout;
    o.transformer.precision.products = s.products;
    nn::Gpt model(o);
    model.to(s.dtype);
    std::optional<parallel::ShardedParameters> shards;
    if (s.shared) shards.emplace(model, group);
    optim::Sgd sgd(model.parameters(), {.lr = 0.1});
    Step step(model, sgd, objective,
              {.accumulate = s.accumulate, .group = &group, .parts = shards ? &*shards : nullptr});
    Generator draws{s.seed, 0};
    for (const bool first : {true, false}) {
      const Tensor ids = randint(0, kVocab, {s.rows, kContext + 1}, kCpu, draws);
      const double loss =
          step({narrow(ids, 1, 0, kContext).contiguous(), narrow(ids, 1, 1, kContext).contiguous()}).loss;
      if (first) losses[static_cast<size_t>(group.rank())] = loss;
    }
  });
  return losses[0];
}

// One loss for each token, [rows, context].
Tensor token_losses(nn::Module& m, const Examples& b) {
  return cross_entropy(m(b.inputs), b.targets, {.reduction = Reduction::none});
}
// 1 for ids below 4, else 0.1.
Tensor mask_of(const Examples& b, DType dtype) { return clamp_min(lt(b.targets, 4).to(dtype), 0.1); }

Tensor own_mask(nn::Module& m, const Examples& b) {
  const Tensor l = token_losses(m, b), w = mask_of(b, l.dtype());
  return sum(l * w) / sum(w);
}
Tensor summed(nn::Module& m, const Examples& b) { return sum(token_losses(m, b)); }
// Contrasts each row's mean logits with all rows' mean logits: the other rows of the batch are its negatives.
Tensor negatives(nn::Module& m, const Examples& b) {
  const Tensor u = mean(m(b.inputs), {1}), v = reshape(u * 30, {b.inputs.size(0), kVocab});
  return cross_entropy(matmul(v, transpose(v, 0, 1)), arange(b.inputs.size(0)));
}

std::string refusal_of(const Objective& objective, const Setting& s) {
  try {
    first_loss(objective, s);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The two losses of a refusal.
std::pair<double, double> losses_in(const std::string& line) {
  const auto number_behind = [&](const std::string& words) {
    const size_t at = line.find(words) + words.size();
    double number = 0;
    read_number(line.substr(at, line.find_first_of(", ", at) - at), number);
    return number;
  };
  return {number_behind("have the loss "), number_behind(", and ")};
}

}  // namespace

TEST_CASE("first steps: an objective that is no mean over rows is refused, on ranks and in micro-batches") {
  const Objective sum_of_rows = [](nn::Module& m, const Examples& b) {
    return WeightedSum{negatives(m, b) * b.inputs.size(0), full({}, static_cast<double>(b.inputs.size(0)))};
  };
  for (const Setting& s : {Setting{.accumulate = 2}, Setting{.ranks = 3}, Setting{.rows = 11, .ranks = 4},
                           Setting{.accumulate = 2, .ranks = 2, .dropout = 0.1},
                           Setting{.dtype = DType::f32, .ranks = 2}, Setting{.ranks = 3, .shared = true}}) {
    INFO(s.rows << " rows, accumulate " << s.accumulate << ", " << s.ranks << " ranks, " << name_of(s.dtype));
    const std::pair<const char*, Objective> kinds[] = {
        {"own mask", own_mask}, {"sum", summed}, {"negatives", negatives}, {"sum of negatives", sum_of_rows}};
    for (const auto& [name, objective] : kinds) {
      INFO(name);
      CHECK_THAT(refusal_of(objective, s),
                 Contains("have the loss") && Contains("Return a WeightedSum") && Contains("parallel::gathered_parts"));
    }
  }
  CHECK(refusal_of(summed, {.dtype = DType::bf16, .ranks = 2}) != "");
  CHECK(refusal_of(negatives, {.dtype = DType::bf16, .accumulate = 2}) != "");
  // The means of two sums of 6 x 8 tokens each are half the sum of 12 x 8.
  const auto [together, combined] = losses_in(refusal_of(summed, {.accumulate = 2}));
  CHECK(together == Approx(2 * combined).epsilon(1e-8));
  CHECK(together == Approx(first_loss(summed, {})).epsilon(1e-8));
  // One process, one part: any objective.
  for (const Objective& objective : {Objective(own_mask), Objective(summed), Objective(negatives)})
    CHECK(std::isfinite(first_loss(objective, {})));
}

TEST_CASE("first steps: a mean over rows, or a sum with its weight, is never refused") {
  const std::pair<const char*, Objective> kinds[] = {
      {"mean", cross_entropy_of},
      {"label smoothing", smoothed_cross_entropy(0.1)},
      {"rows ignored",
       [](nn::Module& m, const Examples& b) { return cross_entropy_sum(m(b.inputs), b.targets, {.ignore_index = 3}); }},
      {"own mask",
       [](nn::Module& m, const Examples& b) {
         const Tensor l = token_losses(m, b), w = mask_of(b, l.dtype());
         return WeightedSum{sum(l * w), sum(w)};
       }},
      {"class weights",
       [](nn::Module& m, const Examples& b) {
         const Tensor logits = m(b.inputs);
         return cross_entropy_sum(logits, b.targets, {.weight = arange(1, kVocab + 1, 1, logits.options())});
       }},
      {"terms of both signs",
       [](nn::Module& m, const Examples& b) {
         const Tensor l = token_losses(m, b);
         return mean(l * (mask_of(b, l.dtype()) - 0.55));
       }},
      {"0 but for rounding",
       [](nn::Module& m, const Examples& b) {
         const Tensor logits = m(b.inputs);
         return cross_entropy(logits, b.targets) - cross_entropy(logits + 1, b.targets);
       }},
      {"numbers of a generator of its own", [](nn::Module& m, const Examples& b) {
         static thread_local Generator draws{4, 0};
         const Tensor l = token_losses(m, b);
         return mean(l * rand(l.shape(), l.options(), draws));
       }}};
  for (uint64_t seed = 1; seed <= 8; ++seed)
    for (const Setting& base : {Setting{}, Setting{.dtype = DType::f32}, Setting{.dtype = DType::bf16},
                                Setting{.dtype = DType::f32, .products = nn::Precision::bf16}})
      for (Setting s : {Setting{.accumulate = 3}, Setting{.rows = 11, .ranks = 3}, Setting{.rows = 3, .ranks = 4},
                        Setting{.ranks = 2, .shared = true}})
        for (const auto& [name, objective] : kinds) {
          s.dtype = base.dtype, s.products = base.products, s.seed = seed, s.dropout = seed % 2 == 0 ? 0.2 : 0;
          INFO(name << ", " << name_of(s.dtype) << ", seed " << seed << ", " << s.rows << " rows, " << s.ranks
                    << " ranks");
          CHECK(refusal_of(objective, s) == "");
        }
}

namespace {

// mean_i sum_(j != i) exp(s_ij - s_ii) with s_ij = W u_i . W v_j / temperature over all rows j of the batch.
// inputs: [n, 2, d]. Rank r leaves out j = r n + i. So if all ranks get the same rows, they add the same numbers in
// different orders.
struct Contrast {
  Group& group;
  double temperature = 16;
  Tensor operator()(nn::Module& m, const Examples& b) const {
    const int64_t n = b.inputs.size(0);
    const Tensor u = m(select(b.inputs, 1, 0)), v = parallel::gathered_parts(m(select(b.inputs, 1, 1)), 0, group);
    const Tensor s = matmul(u, transpose(v, 0, 1)) / temperature;
    const Tensor own =
        eq(reshape(arange(n * group.size()), {1, -1}), reshape(arange(n) + group.rank() * n, {-1, 1})).to(s.dtype());
    return mean(sum(exp(s - sum(s * own, {1}, true)) * (1 - own), {1}));
  }
};

std::vector<double> contrast_losses(Group& group, double temperature = 16) {
  manual_seed(2);
  nn::Linear model(16, 16);
  model.to(DType::f64);
  optim::Sgd sgd(model.parameters(), {.lr = 0.1});
  Step step(model, sgd, Contrast{group, temperature}, {.group = &group});
  std::vector<double> losses;
  for (int t = 0; t < 3; ++t)
    losses.push_back(step({randn({36, 2, 16}, {DType::f64}), zeros({36, 1}, {DType::f64})}).loss);
  return losses;
}

}  // namespace

TEST_CASE("first steps: an objective that the comparison cannot judge trains") {
  const Objective coin = [](nn::Module& m, const Examples& b) {
    return mean(token_losses(m, b)) * (rand({1}).item() < 0.3 ? 0.5 : 1.0);
  };
  const Objective of_three_rows = [](nn::Module& m, const Examples& b) {
    check(b.inputs.size(0) == 3, b.inputs.size(0), " rows, expected 3");
    return mean(token_losses(m, b));
  };
  const Objective sum_in_evaluation = [](nn::Module& m, const Examples& b) {
    return m.training() ? mean(token_losses(m, b)) : summed(m, b);
  };
  for (const auto& [accumulate, ranks] : {std::pair{4, 1}, {2, 2}, {1, 4}}) {
    INFO(accumulate << " micro-batches, " << ranks << " ranks");
    for (uint64_t seed = 1; seed <= 20; ++seed)
      CHECK(refusal_of(coin, {.accumulate = accumulate, .ranks = ranks, .seed = seed}).empty());
    CHECK(refusal_of(of_three_rows, {.accumulate = accumulate, .ranks = ranks}).empty());
    CHECK(refusal_of(sum_in_evaluation, {.accumulate = accumulate, .ranks = ranks}).empty());
  }
}

TEST_CASE("first steps: for n micro-batches the comparison calls the objective 3 (n - 1) times") {
  int calls = 0;
  const Objective counting = [&](nn::Module& m, const Examples& b) {
    ++calls;
    return mean(token_losses(m, b));
  };
  first_loss(counting, {.accumulate = 4});
  CHECK(calls == 2 * (4 + 3 * 3));  // two steps
}

TEST_CASE("first steps: negatives from all ranks train as on one rank, although ranks add in other orders") {
  Group one;
  const std::vector<double> expected = contrast_losses(one);
  for (const int ranks : {2, 3, 4})
    run_ranks(ranks, [&](Group& g) {
      const std::vector<double> found = contrast_losses(g);
      for (size_t t = 0; t < found.size(); ++t)  // 36 sums of 35 terms
        check(std::abs(found[t] - expected[t]) < 100 * epsilon(DType::f64) * expected[t], "step ", t, ": ", found[t],
              ", on one rank ", expected[t]);
    });
  CHECK_THROWS_WITH(run_ranks(3, [](Group& g) { contrast_losses(g, g.rank() == 2 ? 16.01 : 16); }),
                    Contains("rank 2 has another loss of the same rows than rank 0: ") && Contains(" and "));
}
