// E17: perplexities of small language models by connection, next to the papers' figures for models of 130M and 250M.
#include <cmath>

#include "core/printed.h"
#include "io/sha256.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/margin.h"
#include "lab/papers/nets/deep_net.h"
#include "nn/residual/gpas.h"
#include "training/steps/step.h"

namespace isonorm::papers {
namespace {

// Published: LLaMA 130M and 250M after 2.2B and 3.9B tokens (2502.05795, table 1). GPAS: 2506.22049, table 1, whose
// Pre-LN has 26.61 and 21.54.
struct Kind {
  const nn::Arrangement& connection;
  const char *css, *published;
};
const Kind kKinds[] = {{nn::kPreLn, "rms", "26.73, 21.92"},
                       {nn::kMixLn, "negative", "26.07, 21.39"},
                       {nn::kLayerNormScaling, "nested rms", "25.76, 20.35"},
                       {nn::kPreGpas, "crms", "26.25, 21.34 (Pre-LN 26.61, 21.54)"},
                       {nn::kDeepNorm, "isometric", "27.17, 22.77"},
                       {nn::kPostLn, "other", "26.95, 1409.79"}};
constexpr size_t kRivals = 3;  // the first three after Pre-LN, which the papers report to be better
constexpr int kSeeds = kPairs;
constexpr int64_t kContext = 64, kRows = 16, kSeen = 10;
constexpr double kRate = 2e-3;

struct Scale {
  int64_t width, depth, heads, steps;
};

struct Trained {
  std::vector<double> losses;  // means over kSeen steps
  double held_out = 0;         // mean loss on the held-out text
};

Trained trained(const ExperimentOptions& options, const nn::Arrangement& connection, const data::Text& text,
                const Scale& s, uint64_t seed) {
  manual_seed(seed);
  nn::GptOptions o = nn::llama_preset("9m");
  o.vocab = text.vocab(), o.context = kContext;
  o.transformer.width = s.width, o.transformer.depth = s.depth, o.transformer.heads = s.heads;
  o.transformer.mlp_width = 8 * s.width / 3, o.transformer.connection = connection;
  nn::Gpt model(o);
  optim::Adam adam(model.parameters(), {.lr = kRate});
  training::Step step(model, adam, training::cross_entropy_of, {.limits = {.gates = 0.01, .norm = 1}});
  const optim::Schedule rates{.peak = kRate, .warmup = s.steps / 10, .steps = s.steps};
  Trained r;
  for (int64_t t = 0; t < s.steps; ++t) {
    options.go_on();
    const data::TextBatch b = text.batch(kRows, kContext, static_cast<int64_t>(seed) * s.steps + t);
    const double loss = step({b.x, b.y}, rates.lr(t)).loss;
    if (t % kSeen == 0) r.losses.push_back(0);
    r.losses.back() += loss / kSeen;
  }
  const NoGrad no_grad;
  model.eval();
  const int64_t windows = text.held_out_windows(kContext);
  for (int64_t at = 0; at < windows; at += kRows) {
    options.go_on();
    const data::TextBatch b = text.held_out_rows(at, std::min(kRows, windows - at), kContext);
    r.held_out += training::cross_entropy_of(model, {b.x, b.y}).item() * static_cast<double>(b.x.size(0)) /
                  static_cast<double>(windows);
  }
  return r;
}

std::string percent(double log_ratio) { return printed("%+.2f", 100 * std::expm1(log_ratio)); }

}  // namespace

ExperimentResult perplexity(const ExperimentOptions& o) {
  const Scale s = o.full ? Scale{96, 16, 6, 1000} : Scale{48, 8, 4, 200};
  ExperimentResult r;
  const std::string made = o.data.empty() ? data::made_text(o.seed, 1 << 18) : "";
  const data::Text text =
      o.data.empty() ? data::Text(memory_bytes(made, "made text"), o.seed, 0.1) : data::Text(o.data, o.seed, 0.1);
  if (!o.data.empty()) r.data_sha256 = io::sha256_of_files({o.data});
  check(text.held_out_windows(kContext) > 0, "perplexity: ", o.data, " has ", text.length(),
        " bytes; a tenth is held out, expected more than ", kContext);
  constexpr size_t kCount = std::size(kKinds);
  std::vector<Trained> all(kCount * kSeeds);
  o.train_all(all.size(), [&](size_t i) {
    all[i] = trained(o, kKinds[i / kSeeds].connection, text, s, o.seed * 100 + i % kSeeds);
  });
  reports::TextTable table{
      .heading = "Perplexity by connection",
      .columns = {"connection", "perplexity", "relative to Pre-LN, %", "95 % interval", "published, 130M and 250M"},
      .caption =
          isonorm::text("On held-out bytes; ", s.depth, " blocks of width ", s.width,
                        ", RMSNorm by definition, SwiGLU, rotary positions, no biases; ", s.steps, " steps of Adam at ",
                        kRate, " with ", kRows, " rows of ", kContext, " bytes; geometric means over ", kSeeds,
                        " seeds, differences within a seed: the same weights and batches.")};
  std::vector<double> pre;
  std::vector<Curve> curves;
  const std::vector<double> at = every(kSeen, s.steps);
  int below = 0, above = 0;
  for (size_t k = 0; k < kCount; ++k) {
    const Kind& kind = kKinds[k];
    std::vector<double> losses;
    Curve curve{kind.connection.name, kind.css, std::vector<double>(at.size())};
    double mean = 0;
    for (size_t i = k * kSeeds; i < (k + 1) * kSeeds; ++i) {
      losses.push_back(all[i].held_out), mean += all[i].held_out / kSeeds;
      for (size_t t = 0; t < at.size(); ++t) curve.values[t] += all[i].losses[t] / kSeeds;
    }
    curves.push_back(std::move(curve));
    if (k == 0) pre = losses;
    const Difference d = paired_difference(losses, pre);
    if (k > 0 && k <= kRivals) {
      if (d.mean + d.half < 0) ++below;
      if (d.mean - d.half > 0) ++above;
      r.measured += isonorm::text(r.measured.empty() ? "Relative to Pre-LN, perplexity changes by " : ", ",
                                  percent(d.mean), " % (", percent(d.mean - d.half), " to ", percent(d.mean + d.half),
                                  ") with ", kind.connection.name);
    }
    table.rows.push_back({{kind.connection.name},
                          reports::printed_cell("%.4f", std::exp(mean)),
                          {k == 0 ? "" : percent(d.mean)},
                          {k == 0 ? "" : isonorm::text(percent(d.mean - d.half), " to ", percent(d.mean + d.half))},
                          {kind.published}});
  }
  r.confirmed = below == kRivals;
  r.undecided = !r.confirmed && above == 0;
  r.measured += isonorm::text("; the papers' order is ", r.confirmed ? "seen." : "not seen at this size.");
  r.refuted = "one of these three whose 95 % interval lies above Pre-LN";
  r.tables = {std::move(table)};
  r.figures = {curve_figure("loss", "Training losses by connection",
                            isonorm::text("Means over ", kSeen, " steps and ", kSeeds, " seeds."), "step", at, curves)};
  return r;
}

}  // namespace isonorm::papers
