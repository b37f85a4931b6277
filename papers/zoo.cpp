// E4, and all connections on one task over depth, rate and warm-up: who learns, and what goes on inside.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "core/printed.h"
#include "core/system/parallel.h"
#include "papers/all.h"
#include "papers/nets/copy_task.h"
#include "reports/page.h"

namespace isonorm::papers {
namespace {

constexpr double kLearned = 0.5, kIgnorant = 2.5;  // of a loss: below the one, above the other (log 16 = 2.77)
constexpr const char* kTask =
    "Loss of the last tenth of the steps, mean over seeds; every token is to say which one came before it. Knowing "
    "nothing "
    "it is 2.77, knowing all 0.17: nothing is known of the first token.";

// The results in the order of the trainings, which threads share; none where it was stopped.
std::vector<CopyResult> trained(const ExperimentOptions& o, const std::vector<CopyTraining>& trainings) {
  std::vector<CopyResult> results(trainings.size());
  std::mutex mutex;
  size_t done = 0;
  std::atomic<bool> stopped = false;
  parallel_for(std::ssize(trainings), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !stopped; ++i) {
      o.go_on();
      CopyTraining t = trainings[static_cast<size_t>(i)];
      t.before_step = [&o] { o.go_on(); };
      results[static_cast<size_t>(i)] = train_copy(t);
      const std::lock_guard lock(mutex);
      ++done;
      if (o.progress && !o.progress(text("trained ", done, " of ", trainings.size(), ": ", t.connection.name)))
        stopped = true;
    }
  });
  return stopped ? std::vector<CopyResult>() : results;
}

std::string shown(double loss) { return std::isfinite(loss) ? printed("%.3f", loss) : "diverged"; }
reports::TextCell loss_cell(double loss) {
  const reports::Tone tone = loss < kLearned    ? reports::Tone::good
                             : loss < kIgnorant ? reports::Tone::plain
                                                : reports::Tone::bad;
  return {shown(loss), tone, loss};
}

// Of a sweep: connections x depths x rates x with and without warm-up x seeds, in this order.
struct Sweep {
  std::vector<int64_t> depths;
  std::vector<double> rates;
  int64_t warmup, steps;
  int seeds;

  std::vector<CopyTraining> trainings(uint64_t seed) const {
    std::vector<CopyTraining> all;
    for (const nn::Arrangement& a : nn::kArrangements)
      for (int64_t depth : depths)
        for (double rate : rates)
          for (int64_t steps_up : {int64_t{0}, warmup})
            for (int i = 0; i < seeds; ++i)
              all.push_back({a, depth, rate, steps_up, steps, seed * 100 + static_cast<uint64_t>(i)});
    return all;
  }
  size_t index(size_t connection, size_t depth, size_t rate, bool warm, int seed = 0) const {
    const auto n = static_cast<size_t>(seeds);
    return (((connection * depths.size() + depth) * rates.size() + rate) * 2 + warm) * n + static_cast<size_t>(seed);
  }
};

// A panel of two lines or more, in decades.
reports::Panel panel(const std::string& heading, std::vector<reports::ChartLine> lines, const char* axis, double low,
                     double high) {
  reports::Chart chart{
      .title = heading, .log_scale = true, .low = low, .high = high, .axis = axis, .width = 320, .height = 200};
  chart.steps = static_cast<int>(lines.front().values.size());
  chart.lines = std::move(lines);
  return {.heading = heading, .drawing = std::move(chart)};
}

}  // namespace

ExperimentResult warm_up(const ExperimentOptions& o) {
  constexpr double kRate = 1e-2;
  constexpr int64_t kWarmUp = 80;
  constexpr int kSeeds = 2;
  std::vector<CopyTraining> trainings;
  for (const nn::Arrangement& a : {nn::kPostLn, nn::kPreLn})
    for (int64_t steps_up : {int64_t{0}, kWarmUp})
      for (int i = 0; i < kSeeds; ++i)
        trainings.push_back(
            {.connection = a, .lr = kRate, .warmup = steps_up, .seed = o.seed * 100 + static_cast<uint64_t>(i)});
  ExperimentResult r;
  const std::vector<CopyResult> results = trained(o, trainings);
  if (results.empty()) return r.interrupted = true, r;
  double loss[4] = {};
  reports::TextTable table{.heading = "Losses at rate 0.01",
                           .columns = {"", "no warm-up", "80 steps of warm-up"},
                           .caption = text(kTask, " 6 blocks of width 32, 240 steps of Adam, 2 seeds.")};
  reports::Chart chart{.title = "Losses at rate 0.01", .width = 660};
  reports::Panel lines;
  const char* css[] = {"negative", "other", "nested rms", "rms"};
  const char* names[] = {"post_ln", "post_ln, warm-up", "pre_ln", "pre_ln, warm-up"};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < kSeeds; ++k) loss[i] += results[i * kSeeds + k].last / kSeeds;
    chart.lines.push_back({names[i], css[i], results[i * kSeeds].losses});
    lines.legend.push_back({css[i], names[i]});
  }
  for (size_t i : {0, 2}) table.rows.push_back({{names[i]}, loss_cell(loss[i]), loss_cell(loss[i + 1])});
  reports::fit_axis(chart);
  lines.drawing = std::move(chart);
  r.confirmed = !(loss[0] < kIgnorant) && loss[1] < kLearned && loss[2] < kLearned && loss[3] < kLearned;
  r.measured = text("At rate 0.01 Post-LN ends at a loss of ", shown(loss[0]), " without warm-up and at ",
                    shown(loss[1]), " with one; Pre-LN at ", shown(loss[2]), " and ", shown(loss[3]), ".");
  r.refuted = "a Post-LN that comes below 2.5 without warm-up, or one of the others that ends above 0.5";
  r.tables = {table};
  r.figures = {{.name = "loss",
                .heading = "Losses at rate 0.01",
                .panels = {std::move(lines)},
                .caption = "Training loss per step, of the first seed."}};
  return r;
}

ExperimentResult zoo(const ExperimentOptions& o) {
  const Sweep sweep = o.full ? Sweep{{4, 8, 16, 32}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, 200, 600, 2}
                             : Sweep{{6}, {1e-3, 3e-3, 1e-2}, 80, 240, 1};
  ExperimentResult r;
  const std::vector<CopyResult> results = trained(o, sweep.trainings(o.seed));
  if (results.empty()) return r.interrupted = true, r;
  const auto mean_loss = [&](size_t c, size_t d, size_t rate, bool warm) {
    double loss = 0;
    for (int i = 0; i < sweep.seeds; ++i) loss += results[sweep.index(c, d, rate, warm, i)].last / sweep.seeds;
    return loss;
  };
  const size_t connections = std::size(nn::kArrangements), top = sweep.rates.size() - 1,
               middle = sweep.rates.size() / 2;
  // Who learns at a rate with warm-up but not without, somewhere; who learns everywhere.
  std::string need, never;
  for (size_t d = 0; d < sweep.depths.size(); ++d) {
    reports::TextTable table{
        .heading = text("Losses with ", sweep.depths[d], " blocks"),
        .columns = {"connection"},
        .caption = text(kTask, " Width 32, ", sweep.steps, " steps of Adam, ", sweep.seeds,
                        sweep.seeds == 1 ? " seed; + is " : " seeds; + is ", sweep.warmup, " steps of warm-up.")};
    for (double rate : sweep.rates) table.columns.push_back(text(rate)), table.columns.push_back(text(rate, " +"));
    for (size_t c = 0; c < connections; ++c) {
      table.rows.push_back({{nn::kArrangements[c].name}});
      for (size_t rate = 0; rate < sweep.rates.size(); ++rate) {
        const double cold = mean_loss(c, d, rate, false), warm = mean_loss(c, d, rate, true);
        table.rows.back().push_back(loss_cell(cold)), table.rows.back().push_back(loss_cell(warm));
        const std::string where =
            text(nn::kArrangements[c].name, " (", sweep.depths[d], " blocks, rate ", sweep.rates[rate], ")");
        if (!(cold < kLearned) && warm < kLearned) need += (need.empty() ? "" : ", ") + where;
        if (!(cold < kLearned) && !(warm < kLearned)) never += (never.empty() ? "" : ", ") + where;
      }
    }
    r.tables.push_back(std::move(table));
  }
  // Inside, at the middle rate without warm-up, in the deepest.
  const size_t deepest = sweep.depths.size() - 1;
  reports::TextTable inside{
      .heading = text("Inside, with ", sweep.depths[deepest], " blocks at rate ", sweep.rates[middle]),
      .columns = {"connection", "gradient, first block", "last block", "at the end, first", "last",
                  "stream, last block", "at the end"},
      .caption =
          "Norm of the gradient of an MLP's second weight, and mean square of the stream behind "
          "the last block, at the first step and at the last; without warm-up, first seed."};
  reports::Figure losses{.name = "loss",
                         .heading = text("Losses with ", sweep.depths[0], " blocks"),
                         .css = "three",
                         .caption = "Training loss per step without warm-up by rate; first seed."};
  reports::Figure gradients{.name = "gradient",
                            .heading = "Gradients by block",
                            .css = "three",
                            .legend = {{"other", "at the first step"}, {"rms", "at the last"}},
                            .caption = inside.caption};
  reports::Figure streams{.name = "stream",
                          .heading = "The stream by block",
                          .css = "three",
                          .legend = {{"other", "at the first step"}, {"rms", "at the last"}},
                          .caption = inside.caption};
  const char* css[] = {"other", "rms", "crms", "isometric", "negative"};
  for (size_t rate = 0; rate <= top; ++rate) losses.legend.push_back({css[rate], text("rate ", sweep.rates[rate])});
  for (size_t c = 0; c < connections; ++c) {
    const char* name = nn::kArrangements[c].name;
    const CopyResult& seen = results[sweep.index(c, deepest, middle, false)];
    inside.rows.push_back({{name}});
    for (double v : {seen.begin.gradients.front(), seen.begin.gradients.back(), seen.end.gradients.front(),
                     seen.end.gradients.back(), seen.begin.stream.back(), seen.end.stream.back()})
      inside.rows.back().push_back({printed("%.3g", v), reports::Tone::plain, v});
    std::vector<reports::ChartLine> lines;
    for (size_t rate = 0; rate <= top; ++rate)
      lines.push_back({text("rate ", sweep.rates[rate]), css[rate], results[sweep.index(c, 0, rate, false)].losses});
    losses.panels.push_back(panel(name, std::move(lines), "step", 0.1, 10));
    gradients.panels.push_back(
        panel(name, {{"at the first step", "other", seen.begin.gradients}, {"at the last", "rms", seen.end.gradients}},
              "block", 1e-5, 10));
    streams.panels.push_back(
        panel(name, {{"at the first step", "other", seen.begin.stream}, {"at the last", "rms", seen.end.stream}},
              "block", 0.1, 1e4));
  }
  r.tables.push_back(std::move(inside));
  r.figures = {std::move(losses), std::move(gradients), std::move(streams)};
  // Post-LN and Pre-LN, the first two rows, at the shallowest.
  const size_t judged = o.full ? top - 1 : top;
  const double post = mean_loss(1, 0, judged, false);
  r.confirmed =
      !(post < kLearned) && mean_loss(1, 0, judged, true) < kLearned && mean_loss(0, 0, judged, false) < kLearned;
  r.measured = text("With ", sweep.depths[0], " blocks at rate ", sweep.rates[judged], " Post-LN ends at ", shown(post),
                    " without warm-up and at ", shown(mean_loss(1, 0, judged, true)), " with it, Pre-LN at ",
                    shown(mean_loss(0, 0, judged, false)),
                    " without. Below 0.5 only with warm-up: ", need.empty() ? "none" : need,
                    "; not with it either: ", never.empty() ? "none" : never, ".");
  r.refuted = text("a Post-LN that learns at rate ", sweep.rates[judged],
                   " without warm-up or does not with it, or a Pre-LN that does not without");
  return r;
}

}  // namespace isonorm::papers
