// Memory of one of four ranks in each stage of ZeRO (1910.02054, figure 1), from the allocator's counters, compared
// with the formula; and the bytes sent in a step. With P bytes of f32 weights, N ranks and AdamW:
//
//   stage  weights    gradients  optimizer state
//   0      P          P          2 P
//   1      P          P          2 P / N
//   2      P + P / N  P / N      2 P / N
//   3      P / N      P / N      2 P / N
#include "core/memory/bytes.h"
#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/ranks/gpt.h"

namespace isonorm::papers {
namespace {

using distributed::Group;

constexpr int kRanks = 4;
constexpr int64_t kWidth = 128, kDepth = 6;
constexpr double kOff = 0.05;  // for vectors, which all ranks hold, and for blocks that the allocator rounds up

struct Held {
  double weights = 0, all = 0, peak = 0, sent = 0;  // bytes: P; after a backward; peak in it; sent in a step
};

Held held(int stage, const ExperimentOptions& options) {
  Held h;
  std::vector<Tensor> room;
  const int64_t before = host_allocator().stats().current;
  distributed::run_ranks(kRanks, [&](Group& g) {
    manual_seed(options.seed);
    nn::Gpt model = streams::make<nn::Gpt>(rank_gpt(kWidth, kDepth), {.form = streams::Form::rms_norm});
    if (g.rank() == 0)
      for (const Tensor& p : model.parameters()) h.weights += static_cast<double>(byte_size(p));
    std::optional<parallel::ShardedParameters> shards;
    if (stage > 1) shards.emplace(model, g, parallel::ShardedParametersOptions{.keep_whole = stage == 2});
    nn::recompute(model);
    optim::AdamW adamw(model.parameters(), {.lr = 1e-3});
    training::Step step(model, adamw, training::cross_entropy_of,
                        {.group = &g, .zero = stage == 1 ? 1 : 0, .parts = shards ? &*shards : nullptr});
    for (int i = 0; i < 2; ++i) step(rank_batch(options.seed, i));  // the first two steps also compare all weights
    const int64_t before_step = g.bytes_sent();
    step(rank_batch(options.seed, 2));
    if (g.rank() == 0) h.sent = static_cast<double>(g.bytes_sent() - before_step);
    g.barrier();
    if (g.rank() == 0) host_allocator().reset_peak();
    g.barrier();
    step.differentiate(rank_batch(options.seed, 3));
    g.barrier();
    if (g.rank() == 0) {
      const MemoryStats s = host_allocator().stats();
      h.all = static_cast<double>(s.current - before) / kRanks, h.peak = static_cast<double>(s.peak - before) / kRanks;
    }
    g.barrier();
  });
  return h;
}

}  // namespace

ExperimentResult zero_memory(const ExperimentOptions& options) {
  ExperimentResult r;
  reports::TextTable table{
      .heading = "Memory of one of four ranks and bytes that it sends, divided by the bytes of all weights",
      .columns = {"stage", "weights", "gradients", "AdamW", "formula", "measured", "peak", "to send", "sent"},
      .caption =
          "Measured: allocated bytes after a backward. Peak: within the backward, including communication buffers. "
          "Sent: in a step. Blocks are recomputed in the backward."};
  reports::DotPlot plot{.title = "Bytes of a rank relative to the formula",
                        .axis = "measured / formula",
                        .low = 0.1,
                        .high = 10,
                        .zones = {{"good", "as derived", 1 - kOff, 1 + kOff}}};
  constexpr double n = kRanks;
  constexpr double kParts[][3] = {{1, 1, 2}, {1, 1, 2 / n}, {1 + 1 / n, 1 / n, 2 / n}, {1 / n, 1 / n, 2 / n}};
  // Bytes sent per byte of weights, to sum gradients and to get weights from their owners: 2 (N - 1) / N by an
  // all-reduce or a broadcast, (N - 1) / N by a reduce-scatter or a gather.
  constexpr double kSent[] = {2 * (n - 1) / n, 4 * (n - 1) / n, 2 * (n - 1) / n, 3 * (n - 1) / n};
  double worst = 0, least = INFINITY, last = INFINITY;
  bool falls = true;
  for (int stage = 0; stage < 4; ++stage) {
    options.go_on();
    const Held h = held(stage, options);
    const auto& [weights, gradients, state] = kParts[stage];
    const double formula = weights + gradients + state, all = h.all / h.weights;
    const double sent = h.sent / h.weights / kSent[stage];
    worst = std::max({worst, all / formula, sent}), least = std::min({least, all / formula, sent});
    falls = falls && all < last, last = all;
    std::vector<reports::TextCell>& row = table.rows.emplace_back(1, reports::count_cell(stage));
    for (const double bytes :
         {weights, gradients, state, formula, all, h.peak / h.weights, kSent[stage], h.sent / h.weights})
      row.push_back(reports::printed_cell("%.2f", bytes));
    plot.rows.push_back({text("stage ", stage), {{"rms", printed("%.2f", all / formula), all / formula, true}}});
  }
  r.tables.push_back(std::move(table));
  r.figures.push_back({.name = "bytes",
                       .heading = "Memory by stage",
                       .panels = {{.legend = {{"dot solid rms", "measured"}}, .drawing = std::move(plot)}},
                       .caption = "After a backward, including vectors, which all ranks hold."});
  r.confirmed = falls && least > 1 - kOff && worst < 1 + kOff;
  r.measured = text("A rank holds and sends ", printed("%.2f to %.2f", least, worst), " of the formulas' bytes.");
  r.refuted = "a stage that holds more than the one before it, or is off a formula by 5 %";
  return r;
}

}  // namespace isonorm::papers
