// Decoding with a KV cache gives the same logits as the whole sequence, the same beam search and the same continuation.
#include "nn/kv_cache.h"

#include <thread>

#include "nn/generate.h"
#include "nn/modes.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;

namespace {

// About 60 consecutive sums of at most 12 terms; norms of a few numbers enlarge rounding by at most 100.
const double kRounding = 60 * std::sqrt(12) * 100 * 0x1p-52;

TransformerOptions transformer(const Arrangement& a) {
  return {.width = 8, .depth = 4, .heads = 4, .mlp_width = 10, .affine = true, .connection = a};
}

}  // namespace

TEST_CASE("decoding: rows of the batch are chosen, twice or not at all") {
  const NoGrad no_grad;
  EncoderDecoder model({.vocab = 9, .context = 6, .transformer = transformer(kPreLn)});
  draw(model, 5);
  const Tensor source = from_vector<int64_t>({3, 4, 1, 5, 2, 6}, {3, 2}), ids = randint(1, 9, {3, 4}),
               next = randint(1, 9, {4, 1});
  const Encoded encoded = model.encode(source);
  const std::vector<int64_t> rows = {2, 0, 0, 2};
  const auto chosen = [&](const Tensor& x) {
    std::vector<Tensor> parts;
    for (int64_t row : rows) parts.push_back(narrow(x, 0, row, 1));
    return cat(parts, 0);
  };
  DecodingCache cache;
  cache.choose(rows);  // the cache is empty: nothing to choose
  model.decode(encoded, ids, &cache);
  cache.choose(rows);
  const Tensor found = model.decode({chosen(encoded.rows), chosen(encoded.mask)}, next, &cache),
               all = model.decode({chosen(encoded.rows), chosen(encoded.mask)}, cat({chosen(ids), next}, 1));
  check_close(found, narrow(all, 1, 4, 1), kRounding);
}

namespace {

// Beam search that decodes every prefix from the start. Returns the ids after `begin`, without `end`.
std::vector<int64_t> searched(EncoderDecoder& model, const Tensor& source, const DecodeOptions& o) {
  struct Prefix {
    std::vector<int64_t> ids;
    double score;
    double rank(double alpha) const { return score / std::pow((5 + static_cast<double>(ids.size() - 1)) / 6, alpha); }
  };
  const Encoded encoded = model.encode(source);
  std::vector<Prefix> alive = {{{o.begin}, 0}}, ended;
  const auto likelier = [](const Prefix& a, const Prefix& b) { return a.score > b.score; };
  for (int64_t step = 0; step < o.length && !alive.empty() && std::ssize(ended) < o.beams; ++step) {
    std::vector<Prefix> next;
    for (const Prefix& p : alive) {
      const Tensor logits = model.decode(encoded, from_vector(p.ids, {1, std::ssize(p.ids)}));
      const std::vector<double> scores = log_softmax(select(select(logits, 1, -1), 0, 0), -1).to_vector<double>();
      for (size_t id = 0; id < scores.size(); ++id) {
        next.push_back({p.ids, p.score + scores[id]});
        next.back().ids.push_back(static_cast<int64_t>(id));
      }
    }
    std::stable_sort(next.begin(), next.end(), likelier);
    alive.clear();
    for (int64_t i = 0; i < std::ssize(next) && std::ssize(alive) < o.beams; ++i) {
      const bool end = next[i].ids.back() == o.end;
      if (!end) alive.push_back(next[i]);
      if (end && i < o.beams) ended.push_back(next[i]);
    }
  }
  for (const Prefix& p : alive)
    if (std::ssize(p.ids) == o.length + 1) ended.push_back(p);
  std::vector<int64_t> best = std::max_element(ended.begin(), ended.end(), [&](const Prefix& a, const Prefix& b) {
                                return a.rank(o.length_penalty) < b.rank(o.length_penalty);
                              })->ids;
  best.erase(best.begin());
  if (!best.empty() && best.back() == o.end) best.pop_back();
  return best;
}

}  // namespace

TEST_CASE("decoding: translate finds the same as a search that decodes every prefix from its start") {
  size_t longest = 0;
  int differ = 0;
  for (const Arrangement& a : {kPreLn, kPostLn, kResiDual, kSandwichGpas}) {
    EncoderDecoder model({.vocab = 11, .context = 12, .transformer = transformer(a)});
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      draw(model, seed, 0.8);
      const NoGrad no_grad;
      const Tensor sources = randint(1, 11, {2, 5});
      std::vector<std::vector<int64_t>> by_beams;
      for (const int64_t beams : {1, 2, 4, 100}) {
        INFO(a.name << ", seed " << seed << ", " << beams << " beams");
        const DecodeOptions o{.length = 12, .beams = beams};
        const std::vector<std::vector<int64_t>> found = translate(model, sources, o);
        for (int64_t i = 0; i < 2; ++i) {
          CHECK(found[i] == searched(model, narrow(sources, 0, i, 1), o));
          longest = std::max(longest, found[i].size());
        }
        by_beams.push_back(found[0]);
      }
      differ += by_beams[0] != by_beams[2];
    }
  }
  CHECK(longest > 4);  // long prefixes, for which a cache matters
  CHECK(differ > 1);   // searches in which beams change places
}

TEST_CASE("decoding: of enough beams translate finds the best of all hypotheses, ended or at full length") {
  constexpr int64_t kIds = 4, kLength = 4;
  EncoderDecoder model({.vocab = kIds, .context = kLength, .transformer = transformer(kPreLn)});
  int longest = 0, ended = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    draw(model, seed, 0.8);
    const NoGrad no_grad;
    const Tensor source = randint(1, kIds, {1, 3});
    const Encoded encoded = model.encode(source);
    const DecodeOptions o{.length = kLength, .beams = 256, .length_penalty = seed % 2 == 0 ? 0.6 : 0};
    // Enumerates all hypotheses: the ids are the digits of `number`. Digits after an end id are ignored.
    double best = -INFINITY;
    std::vector<int64_t> expected;
    for (int64_t number = 0; number < 256; ++number) {
      std::vector<int64_t> ids;
      for (int64_t rest = number; std::ssize(ids) < kLength && (ids.empty() || ids.back() != o.end); rest /= kIds)
        ids.push_back(rest % kIds);
      std::vector<int64_t> before = {o.begin};
      before.insert(before.end(), ids.begin(), ids.end() - 1);
      const int64_t n = std::ssize(ids);
      const auto scores =
          log_softmax(model.decode(encoded, from_vector(before, {1, n})), -1).to_vector<double>();  // [1, n, kIds]
      double score = 0;
      for (int64_t i = 0; i < n; ++i) score += scores[i * kIds + ids[i]];
      const double rank = score / std::pow((5 + static_cast<double>(n)) / 6, o.length_penalty);
      if (rank <= best) continue;
      best = rank;
      expected = ids;
    }
    longest += std::ssize(expected) == kLength && expected.back() != o.end;
    if (expected.back() == o.end) expected.pop_back(), ++ended;
    INFO("seed " << seed);
    CHECK(translate(model, source, o)[0] == expected);
  }
  CHECK((longest > 1 && ended > 1));  // both kinds occur
}

TEST_CASE("decoding: a model that trains decodes in evaluation mode, and nothing is written to it") {
  TransformerOptions t = transformer(kPreLn);
  t.branch.dropout = 0.5;
  Gpt gpt({.vocab = 7, .context = 6, .transformer = t});
  EncoderDecoder translator({.vocab = 9, .context = 6, .transformer = t});
  draw(gpt, 1, 0.8), draw(translator, 2, 0.8);
  const Tensor prompt = from_vector<int64_t>({3, 1}, {2}), sources = randint(1, 9, {2, 5});
  const GenerateOptions greedy{.length = 9, .temperature = 0};
  gpt.eval(), translator.eval();
  const auto continued = generate(gpt, prompt, greedy).to_vector<int64_t>();
  const auto translated = translate(translator, sources, {.beams = 3});

  gpt.train(), translator.train();
  gpt.children()[0]->eval(), translator.children()[0]->eval();
  Generator g;
  const auto trains_elsewhere = [&](std::span<const int64_t>) {
    bool trains = false;
    std::thread([&] { trains = gpt.training(); }).join();
    CHECK((trains && !gpt.training()));
    return true;
  };
  CHECK(generate(gpt, prompt, greedy, g, trains_elsewhere).to_vector<int64_t>() == continued);
  CHECK_THROWS(
      generate(gpt, prompt, greedy, g, [](std::span<const int64_t>) -> bool { throw std::runtime_error("stop"); }));
  std::vector<std::vector<std::vector<int64_t>>> found(4);
  std::vector<std::thread> threads;
  for (auto& f : found) threads.emplace_back([&] { f = translate(translator, sources, {.beams = 3}); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& f : found) CHECK(f == translated);
  for (const Module* m : {static_cast<Module*>(&gpt), static_cast<Module*>(&translator)}) {
    CHECK(m->training());
    CHECK(!m->children()[0]->training());
    CHECK(m->children()[1]->training());
  }
}

TEST_CASE("evaluation mode: a copy that is made in it trains as its original does") {
  Gpt gpt({.vocab = 7, .context = 6, .transformer = transformer(kPreLn)});
  for (const bool trains : {true, false}) {
    gpt.train(trains);
    const auto copy = [&] {
      const EvaluationMode evaluation;
      return clone(gpt);
    }();
    CHECK(copy.training() == trains);
  }
}

TEST_CASE("evaluation mode: blocks that are computed again for a backward are in the mode of their forward") {
  TransformerOptions t = transformer(kPreLn);
  t.branch.dropout = 0.5;
  Gpt gpt({.vocab = 7, .context = 6, .transformer = t});
  draw(gpt, 1, 0.8);
  const Tensor ids = randint(0, 7, {2, 6});
  const auto gradients = [&](bool again, bool evaluates) {
    recompute(gpt, again);
    for (const Tensor& p : gpt.parameters()) set_grad(p, {});
    manual_seed(3);
    const Tensor loss = [&] {
      const EvaluationMode mode(evaluates);
      return mean(square(gpt(ids)));
    }();
    const EvaluationMode mode(!evaluates);  // the mode during the backward
    backward(loss);
    std::vector<std::vector<double>> all;
    for (const Tensor& p : gpt.parameters()) all.push_back(p.grad().to_vector<double>());
    return all;
  };
  for (const bool evaluates : {true, false}) CHECK(gradients(true, evaluates) == gradients(false, evaluates));
}

TEST_CASE("decoding: generate goes on as the whole window's logits say, over the context's end") {
  for (const Positions positions : {Positions::learned, Positions::rotary}) {
    TransformerOptions t = transformer(kPreLn);
    t.positions = positions;
    Gpt model({.vocab = 7, .context = 6, .transformer = t});
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      draw(model, seed, 0.8);
      Generator g{seed, 0};
      const Tensor prompt = from_vector<int64_t>({3, 1}, {2});
      const auto ids = generate(model, prompt, {.length = 9, .temperature = 0}, g).to_vector<int64_t>();
      REQUIRE(ids.size() == 11);
      CHECK(generate(model, prompt, {.length = 9, .temperature = 5, .top_k = 1}, g).to_vector<int64_t>() == ids);
      CHECK_THROWS_WITH(generate(model, empty({0}, {DType::i64}), {}, g), Contains("prompt"));
      const NoGrad no_grad;
      for (size_t i = 2; i < ids.size(); ++i) {
        const size_t from = i > 6 ? i - 6 : 0;
        const Tensor window = from_vector<int64_t>(
            {ids.begin() + static_cast<std::ptrdiff_t>(from), ids.begin() + static_cast<std::ptrdiff_t>(i)},
            {1, static_cast<int64_t>(i - from)});
        INFO(name_of(positions) << ", seed " << seed << ", id " << i);
        CHECK(ids[i] == static_cast<int64_t>(argmax(select(select(model(window), 1, -1), 0, 0)).item()));
      }
    }
  }
}

TEST_CASE("decoding: calls that a KV cache does not support are refused in one line") {
  const NoGrad no_grad;
  Gpt model({.vocab = 7, .context = 9, .transformer = transformer(kPreLn)});
  draw(model, 1);
  DecodingCache cache;
  model.features(randint(0, 7, {1, 3}), &cache);
  CHECK_THROWS_WITH(model.features(randint(0, 7, {1, 2}), &cache),
                    Contains("attention: 2 new tokens after 3 in the KV cache, expected 1"));
  MultiheadAttention sees_all(8, {.heads = 2, .head_width = 4}),
      causal(8, {.heads = 2, .head_width = 4, .causal = true});
  const Tensor x = randn({1, 1, 8});
  KeyValues seen;
  CHECK_THROWS_WITH(sees_all(x, {}, &seen), Contains("a KV cache needs causal attention without a mask"));
  CHECK_THROWS_WITH(causal(x, zeros({1, 1, 1, 1}), &seen), Contains("without a mask"));
}
