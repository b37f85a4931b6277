#include "nn/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/shape.h"
#include "core/formulas/philox.h"
#include "nn/modes.h"

namespace isonorm::nn {

void GenerateOptions::check() const {
  isonorm::check(length >= 0, "generate: length ", length, ", expected 0 or more");
  isonorm::check(temperature >= 0 && std::isfinite(temperature), "generate: temperature ", temperature,
                 ", expected 0 or more, finite");
  isonorm::check(top_k >= 0, "generate: top_k ", top_k, ", expected 0 or more");
  isonorm::check(top_p > 0 && top_p <= 1, "generate: top_p ", top_p, ", expected above 0, at most 1");
  isonorm::check(min_p >= 0 && min_p <= 1, "generate: min_p ", min_p, ", expected 0 to 1");
  isonorm::check(repetition_penalty > 0 && std::isfinite(repetition_penalty), "generate: repetition_penalty ",
                 repetition_penalty, ", expected above 0, finite");
}

int64_t choose(std::span<const double> logits, const GenerateOptions& o, std::span<const int64_t> seen,
               Generator& generator) {
  std::vector<double> scores(logits.begin(), logits.end());
  for (double s : scores)
    if (std::isnan(s)) throw NotFinite("generate: a logit is NaN");
  if (o.repetition_penalty != 1) {
    std::vector<int64_t> once(seen.begin(), seen.end());
    std::ranges::sort(once);
    once.erase(std::unique(once.begin(), once.end()), once.end());
    for (int64_t id : once) {
      check(id >= 0 && id < std::ssize(scores), "generate: the id ", id, " is there, expected 0 to ",
            std::ssize(scores) - 1);
      double& s = scores[static_cast<size_t>(id)];
      s = s > 0 ? s / o.repetition_penalty : s * o.repetition_penalty;
    }
  }
  const auto best = std::ranges::max_element(scores);
  if (best == scores.end() || !std::isfinite(*best)) throw NotFinite("generate: the largest logit is not finite");
  if (o.temperature == 0) return best - scores.begin();
  const double largest = *best;
  for (double& s : scores)
    s = std::exp((s - largest) / o.temperature);  // from here on: probabilities divided by the largest one

  std::vector<int64_t> kept(scores.size());
  std::iota(kept.begin(), kept.end(), 0);
  const auto first = [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; };
  if (o.top_k > 0 && o.top_k < std::ssize(kept)) {
    std::ranges::partial_sort(kept, kept.begin() + o.top_k, first);
    kept.resize(static_cast<size_t>(o.top_k));
  } else if (o.top_p < 1) {
    std::ranges::sort(kept, first);
  }
  const auto sum = [&] {
    double s = 0;
    for (int64_t id : kept) s += scores[id];
    return s;
  };
  if (o.top_p < 1) {
    const double enough = o.top_p * sum();
    size_t count = 0;
    for (double together = 0; together < enough && count < kept.size();) together += scores[kept[count++]];
    kept.resize(std::max<size_t>(1, count));
  }
  std::erase_if(kept, [&](int64_t id) { return scores[id] < o.min_p; });
  const Generator at = generator.take(1);
  const double target = static_cast<double>(philox(at.seed, at.offset).wide(0) >> 11) * 0x1p-53 * sum();
  double running = 0;
  for (int64_t id : kept)
    if ((running += scores[id]) > target) return id;
  return kept.back();  // reached only by rounding
}

Tensor generate(Gpt& model, const Tensor& prompt, const GenerateOptions& o, Generator& generator, const OnIds& on_ids) {
  check((prompt.rank() == 1 || prompt.rank() == 2) && prompt.numel() > 0, "generate: the prompt has shape ",
        prompt.shape(), ", expected [time] or [rows, time] with at least one id");
  o.check();
  const NoGrad no_grad;
  const EvaluationMode evaluation;
  const int64_t rows = prompt.rank() == 2 ? prompt.size(0) : 1, context = model.options.context;
  const Device device = model.parameters().front().device();
  std::vector<std::vector<int64_t>> ids;  // by row
  for (int64_t r = 0; r < rows; ++r)
    ids.push_back((prompt.rank() == 2 ? select(prompt, 0, r) : prompt).to_vector<int64_t>());
  const auto last = [&](int64_t n) {
    std::vector<int64_t> all;
    for (const auto& row : ids) all.insert(all.end(), row.end() - n, row.end());
    return from_vector(all, {rows, n});
  };
  DecodingCache cache;
  std::vector<int64_t> next(static_cast<size_t>(rows));
  for (int64_t i = 0; i < o.length; ++i) {
    // If the window has moved, every id has a new position, so the cache is of no use.
    const int64_t time = std::ssize(ids[0]);
    const bool moves = time > context;
    const Tensor window = last(moves ? context : time - cache.time());
    const Tensor features = model.features(to(window, device), moves ? nullptr : &cache);
    const std::vector<double> logits = model.logits(select(features, 1, -1)).to(kCpu).to_vector<double>();
    for (int64_t r = 0; r < rows; ++r) {
      const auto of_row = std::span(logits).subspan(r * model.options.vocab, model.options.vocab);
      next[r] = choose(of_row, o, ids[r], generator);
      ids[r].push_back(next[r]);
    }
    if (on_ids && !on_ids(next)) break;
  }
  const Tensor all = last(std::ssize(ids[0]));
  return to(prompt.rank() == 2 ? all : select(all, 0, 0), prompt.device());
}

}  // namespace isonorm::nn
