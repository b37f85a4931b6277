// Choosing the next id, and generation of whole rows.
#include "nn/generate.h"

#include <cmath>
#include <limits>
#include <map>

#include "core/random.h"
#include "tests/support/catch.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;

namespace {

// Number of times that each id is chosen in n draws.
std::map<int64_t, int> counts(const std::vector<double>& logits, const GenerateOptions& o, int n = 4000,
                              const std::vector<int64_t>& seen = {}) {
  Generator g{7, 0};
  std::map<int64_t, int> count;
  for (int i = 0; i < n; ++i) ++count[choose(logits, o, seen, g)];
  return count;
}

std::vector<int64_t> ids(const std::map<int64_t, int>& counts) {
  std::vector<int64_t> all;
  for (const auto& [id, _] : counts) all.push_back(id);
  return all;
}

// Probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<double> kLogits = {std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};
using Ids = std::vector<int64_t>;

}  // namespace

TEST_CASE("choose: the frequencies are the probabilities, at any temperature") {
  const int n = 40'000;
  for (double temperature : {0.5, 1.0, 2.0}) {
    const std::map<int64_t, int> count = counts(kLogits, {.temperature = temperature}, n);
    double total = 0;
    const double of[] = {0.1, 0.4, 0.2, 0.3};
    for (double p : of) total += std::pow(p, 1 / temperature);
    for (const auto& [id, times] : count) {
      const double p = std::pow(of[id], 1 / temperature) / total;
      CHECK(std::abs(times - n * p) < 4 * std::sqrt(n * p * (1 - p)));
    }
    CHECK(count.size() == 4);
  }
}

TEST_CASE("choose: what narrows the choice") {
  CHECK(ids(counts(kLogits, {.temperature = 0})) == Ids{1});
  CHECK(ids(counts(kLogits, {.top_k = 2})) == Ids{1, 3});
  CHECK(ids(counts(kLogits, {.top_k = 9})) == Ids{0, 1, 2, 3});
  CHECK(ids(counts(kLogits, {.top_p = 0.39})) == Ids{1});
  CHECK(ids(counts(kLogits, {.top_p = 0.69})) == Ids{1, 3});
  CHECK(ids(counts(kLogits, {.top_p = 0.71})) == Ids{1, 2, 3});
  CHECK(ids(counts(kLogits, {.top_p = 1e-9})) == Ids{1});
  CHECK(ids(counts(kLogits, {.min_p = 0.49})) == Ids{1, 2, 3});  // 0.2 is half of the largest
  CHECK(ids(counts(kLogits, {.min_p = 0.51})) == Ids{1, 3});
  CHECK(ids(counts(kLogits, {.min_p = 1})) == Ids{1});
  // top_p applies to the ids that top_k leaves: 0.4 / 0.7 = 0.57.
  CHECK(ids(counts(kLogits, {.top_k = 2, .top_p = 0.55})) == Ids{1});
  CHECK(ids(counts(kLogits, {.top_k = 2, .top_p = 0.6})) == Ids{1, 3});
  // Temperature comes first: at 0.5 the ratios to the largest are squared.
  CHECK(ids(counts(kLogits, {.temperature = 0.5, .min_p = 0.3})) == Ids{1, 3});
  CHECK(ids(counts({0, 0, 0}, {.top_k = 2})) == Ids{0, 1});  // of equal logits the first
}

TEST_CASE("choose: a penalty for tokens that already occur") {
  const std::vector<double> logits = {2, 1, -1, -1.5};
  const auto best = [&](double penalty, const Ids& seen) {
    Generator g;
    return choose(logits, {.temperature = 0, .repetition_penalty = penalty}, seen, g);
  };
  CHECK(best(1, {0, 0}) == 0);
  CHECK(best(1.9, {0, 0}) == 0);  // applied once, although the id occurs twice
  CHECK(best(2.1, {0}) == 1);
  CHECK(best(3, {0, 1}) == 0);
  Generator g;
  CHECK(choose(std::vector<double>{-1, -1.5}, {.temperature = 0, .repetition_penalty = 1.6}, Ids{0}, g) == 1);
  CHECK(g == Generator());  // nothing was drawn
}

TEST_CASE("choose: refused options") {
  Generator g;
  CHECK_THROWS_WITH(choose(std::vector<double>{0, NAN}, {}, {}, g), Contains("NaN"));
  const auto refused = [](const GenerateOptions& o, const char* what) { CHECK_THROWS_WITH(o.check(), Contains(what)); };
  refused({.length = -1}, "length -1");
  refused({.temperature = -1}, "temperature -1");
  refused({.temperature = NAN}, "temperature nan");
  refused({.top_k = -1}, "top_k -1");
  refused({.top_p = 0}, "top_p 0");
  refused({.top_p = 1.5}, "top_p 1.5");
  refused({.min_p = 2}, "min_p 2");
  refused({.repetition_penalty = 0}, "repetition_penalty 0");
}

TEST_CASE("generate: rows go on by themselves, and who listens may end them") {
  manual_seed(3);
  Gpt model({.vocab = 11, .context = 5, .transformer = {.width = 16, .depth = 2, .heads = 2}});
  const Tensor prompts = from_vector<int64_t>({1, 2, 3, 9}, {2, 2});
  const GenerateOptions greedy{.length = 8, .temperature = 0};
  const Tensor both = generate(model, prompts, greedy);
  REQUIRE(both.shape() == Dims{2, 10});
  for (int64_t r = 0; r < 2; ++r) {
    const Tensor alone = generate(model, from_vector<int64_t>({r == 0 ? 1 : 3, r == 0 ? 2 : 9}, {2}), greedy);
    const std::vector<int64_t> all = both.to_vector<int64_t>();
    CHECK(alone.to_vector<int64_t>() == std::vector<int64_t>(all.begin() + 10 * r, all.begin() + 10 * (r + 1)));
  }
  std::vector<int64_t> heard;
  Generator g;
  const Tensor ended = generate(model, prompts, greedy, g, [&](std::span<const int64_t> step) {
    heard.insert(heard.end(), step.begin(), step.end());
    return heard.size() < 6;
  });
  CHECK(ended.shape() == Dims{2, 5});
  const std::vector<int64_t> all = both.to_vector<int64_t>();
  CHECK(heard == std::vector<int64_t>{all[2], all[12], all[3], all[13], all[4], all[14]});
  CHECK_THROWS_WITH(generate(model, empty({0}, {DType::i64}), greedy), Contains("prompt"));
  CHECK_THROWS_WITH(generate(model, empty({2, 0}, {DType::i64}), greedy), Contains("prompt"));
}

TEST_CASE("choose: nothing is chosen of logits that have no probabilities, or by an id that is none") {
  Generator g{7, 0};
  const float infinite = std::numeric_limits<float>::infinity();
  for (double temperature : {0.0, 1.0}) {
    const GenerateOptions o{.temperature = temperature};
    CHECK_THROWS_WITH(choose(std::vector<double>{0., infinite}, o, {}, g), Contains("the largest logit is not finite"));
    CHECK_THROWS_WITH(choose(std::vector<double>{-infinite, -infinite}, o, {}, g), Contains("not finite"));
    CHECK_THROWS_WITH(choose({}, o, {}, g), Contains("not finite"));
    CHECK(choose(std::vector<double>{-infinite, -3e38, -infinite}, o, {}, g) == 1);
  }
  const GenerateOptions penalised{.repetition_penalty = 1e-320};
  CHECK_THROWS_WITH(choose(kLogits, penalised, Ids{4}, g), Contains("the id 4 is there, expected 0 to 3"));
  CHECK_THROWS_WITH(choose(kLogits, penalised, Ids{-1}, g), Contains("the id -1 is there"));
  CHECK_THROWS_WITH(choose(std::vector<double>{1., 2.}, penalised, Ids{0}, g), Contains("not finite"));
  CHECK_THROWS_WITH(GenerateOptions{.temperature = infinite}.check(), Contains("temperature inf"));
  CHECK_THROWS_WITH(GenerateOptions{.repetition_penalty = infinite}.check(), Contains("repetition_penalty inf"));
}
