// E4, and all connections on one task over depth, learning rate and warm-up: which train, and their gradients and
// streams.
#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/nets/deep_net.h"

namespace isonorm::papers {
namespace {

// --- a copy task that a small Transformer learns in some hundred steps: for each token, predict the token before it ---

constexpr int64_t kRows = 16, kTokens = 16, kWidth = 32;
constexpr int64_t kCopyVocabulary = 16;  // log(16) = 2.77 is the loss of a uniform prediction

struct CopyTraining {
  nn::Arrangement connection;
  int64_t depth = 6;
  double lr = 1e-3;
  int64_t warmup = 0, steps = 240;
  uint64_t seed = 1;
};

// Values for each block, at the first or at the last step.
struct Inside {
  std::vector<double> gradients;  // gradient norm of the MLP's second weight
  std::vector<double> stream;     // mean square of the stream after the block
};

struct CopyResult {
  std::vector<double> losses;
  double last = 0;  // mean of the last tenth; NaN or large if the training diverged
  Inside begin, end;
};

class CopyNet : public nn::Module {
 public:
  explicit CopyNet(const nn::TransformerOptions& o)
      : token_(add("token", nn::Embedding(kCopyVocabulary, o.width))),
        position_(add("position", nn::Embedding(kTokens, o.width))),
        net(add("net", DeepNet(o, kCopyVocabulary))) {}
  Tensor rows(const Tensor& ids) { return token_(ids) + position_.first(ids.size(1)); }
  Tensor forward(const Tensor& ids) override { return net(rows(ids)); }

 private:
  nn::Embedding &token_, &position_;

 public:
  DeepNet& net;
};

// Trains a model of width 32 with two heads and learned positions, f32, with Adam (0.9, 0.98) on 16 new rows of 16
// tokens per step. The learning rate is constant after the warm-up. Weights and batches depend only on the seed.
CopyResult train_copy(const ExperimentOptions& o, const CopyTraining& t) {
  manual_seed(t.seed);
  CopyNet model({.width = kWidth, .depth = t.depth, .heads = 2, .causal = true, .connection = t.connection});
  optim::Adam adam(model.parameters(), {.lr = t.lr, .beta1 = 0.9, .beta2 = 0.98});
  const optim::Schedule rates{.peak = t.lr, .warmup = t.warmup, .steps = t.steps, .decay = optim::Decay::constant};
  Generator draw{.seed = t.seed + 1000};
  CopyResult r;
  for (int64_t step = 0; step < t.steps; ++step) {
    o.go_on();
    const Tensor all = randint(0, kCopyVocabulary, {kRows, kTokens + 1}, kCpu, draw);
    const Tensor ids = narrow(all, 1, 1, kTokens), before = narrow(all, 1, 0, kTokens);
    for (const Tensor& p : model.parameters()) set_grad(p, {});
    const Tensor loss = cross_entropy(model(ids), reshape(before, {before.numel()}));
    backward(loss);
    r.losses.push_back(loss.item());
    if (step == 0 || step == t.steps - 1) {
      const NoGrad no_grad;
      Inside& seen = step == 0 ? r.begin : r.end;
      const std::vector<Tensor> streams = model.net.streams(model.rows(ids));
      for (int64_t b = 0; b < t.depth; ++b) {
        seen.gradients.push_back(model.net.gradient_norm(b));
        seen.stream.push_back(mean(square(streams[static_cast<size_t>(b + 1)])).item());
      }
    }
    adam.set_lr(rates.lr(step));
    adam.step();
  }
  const size_t tenth = std::max<size_t>(1, r.losses.size() / 10);
  for (size_t i = r.losses.size() - tenth; i < r.losses.size(); ++i) r.last += r.losses[i] / static_cast<double>(tenth);
  return r;
}

// --- sweeps ---

constexpr double kLearned = 0.5, kIgnorant = 2.5;  // bounds of the loss (log 16 = 2.77)
constexpr const char* kTask =
    "Loss of the last tenth of the steps, mean over seeds; the model predicts, for each token, the token before it. A "
    "uniform prediction has 2.77; the best possible loss is 0.17, because the first token has no predecessor.";

std::string shown(double loss) { return std::isfinite(loss) ? printed("%.3f", loss) : "diverged"; }
reports::TextCell loss_cell(double loss) {
  const reports::Tone tone = loss < kLearned    ? reports::Tone::good
                             : loss < kIgnorant ? reports::Tone::plain
                                                : reports::Tone::bad;
  return {shown(loss), tone, loss};
}

// One training for each connection, depth, rate, warm-up (without and with) and seed.
struct Sweep {
  std::vector<nn::Arrangement> connections;
  std::vector<int64_t> depths;
  std::vector<double> rates;
  int64_t warmup, steps;
  int seeds;
  std::vector<CopyResult> results = {};

  void train(const ExperimentOptions& o) {
    std::vector<CopyTraining> all;
    for (const nn::Arrangement& a : connections)
      for (int64_t depth : depths)
        for (double rate : rates)
          for (int64_t steps_up : {int64_t{0}, warmup})
            for (int i = 0; i < seeds; ++i)
              all.push_back({a, depth, rate, steps_up, steps, o.seed * 100 + static_cast<uint64_t>(i)});
    results.resize(all.size());
    o.train_all(all.size(), [&](size_t i) { results[i] = train_copy(o, all[i]); });
  }
  const CopyResult& at(size_t connection, size_t depth, size_t rate, bool warm, int seed = 0) const {
    const size_t first = ((connection * depths.size() + depth) * rates.size() + rate) * 2 + warm;
    return results[first * static_cast<size_t>(seeds) + static_cast<size_t>(seed)];
  }
  double mean_loss(size_t connection, size_t depth, size_t rate, bool warm) const {
    double loss = 0;
    for (int i = 0; i < seeds; ++i) loss += at(connection, depth, rate, warm, i).last / seeds;
    return loss;
  }
};

// A chart of two or more lines with a logarithmic scale.
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
  Sweep sweep{{nn::kPostLn, nn::kPreLn}, {6}, {1e-2}, 80, 240, 2};
  sweep.train(o);
  ExperimentResult r;
  double loss[4];
  reports::TextTable table{.heading = "Losses at rate 0.01",
                           .columns = {"", "no warm-up", "80 steps of warm-up"},
                           .caption = text(kTask, " 6 blocks of width 32, 240 steps of Adam, 2 seeds.")};
  reports::Chart chart{.title = "Losses at rate 0.01", .width = 660};
  const char* css[] = {"negative", "other", "nested rms", "rms"};
  const char* names[] = {"post_ln", "post_ln, warm-up", "pre_ln", "pre_ln, warm-up"};
  for (size_t i = 0; i < 4; ++i) {
    loss[i] = sweep.mean_loss(i / 2, 0, 0, i % 2);
    chart.lines.push_back({names[i], css[i], sweep.at(i / 2, 0, 0, i % 2).losses});
  }
  for (size_t i : {0, 2}) table.rows.push_back({{names[i]}, loss_cell(loss[i]), loss_cell(loss[i + 1])});
  reports::fit_axis(chart);
  r.confirmed = !(loss[0] < kIgnorant) && loss[1] < kLearned && loss[2] < kLearned && loss[3] < kLearned;
  r.measured = text("At rate 0.01 Post-LN ends at a loss of ", shown(loss[0]), " without warm-up and at ",
                    shown(loss[1]), " with one; Pre-LN at ", shown(loss[2]), " and ", shown(loss[3]), ".");
  r.refuted = "a Post-LN below 2.5 without warm-up, or another training that ends above 0.5";
  r.tables = {table};
  r.figures = {{.name = "loss",
                .heading = "Losses at rate 0.01",
                .panels = {panel_of(std::move(chart))},
                .caption = "Training loss per step, of the first seed."}};
  return r;
}

ExperimentResult zoo(const ExperimentOptions& o) {
  const std::vector<nn::Arrangement> all(std::begin(nn::kArrangements), std::end(nn::kArrangements));
  Sweep sweep = o.full ? Sweep{all, {4, 8, 16, 32}, {3e-4, 1e-3, 3e-3, 1e-2, 3e-2}, 200, 600, 2}
                       : Sweep{all, {6}, {1e-3, 3e-3, 1e-2}, 80, 240, 1};
  sweep.train(o);
  ExperimentResult r;
  const size_t top = sweep.rates.size() - 1, middle = sweep.rates.size() / 2;
  // need: learn only with warm-up. never: learn neither with nor without.
  std::string need, never;
  for (size_t d = 0; d < sweep.depths.size(); ++d) {
    reports::TextTable table{
        .heading = text("Losses with ", sweep.depths[d], " blocks"),
        .columns = {"connection"},
        .caption = text(kTask, " Width 32, ", sweep.steps, " steps of Adam, ", sweep.seeds,
                        sweep.seeds == 1 ? " seed; + is " : " seeds; + is ", sweep.warmup, " steps of warm-up.")};
    for (double rate : sweep.rates) table.columns.push_back(text(rate)), table.columns.push_back(text(rate, " +"));
    for (size_t c = 0; c < all.size(); ++c) {
      table.rows.push_back({{all[c].name}});
      for (size_t rate = 0; rate < sweep.rates.size(); ++rate) {
        const double cold = sweep.mean_loss(c, d, rate, false), warm = sweep.mean_loss(c, d, rate, true);
        table.rows.back().push_back(loss_cell(cold)), table.rows.back().push_back(loss_cell(warm));
        const std::string where = text(all[c].name, " (", sweep.depths[d], " blocks, rate ", sweep.rates[rate], ")");
        if (!(cold < kLearned) && warm < kLearned) need += (need.empty() ? "" : ", ") + where;
        if (!(cold < kLearned) && !(warm < kLearned)) never += (never.empty() ? "" : ", ") + where;
      }
    }
    r.tables.push_back(std::move(table));
  }
  // Gradients and streams of the deepest networks at the middle rate, without warm-up.
  const size_t deepest = sweep.depths.size() - 1;
  reports::TextTable inside{
      .heading = text("Inside, with ", sweep.depths[deepest], " blocks at rate ", sweep.rates[middle]),
      .columns = {"connection", "gradient, first block", "last block", "at the end, first", "last",
                  "stream, last block", "at the end"},
      .caption =
          "Norm of the gradient of an MLP's second weight, and mean square of the stream after the last block, at the "
          "first step and at the last; without warm-up, first seed."};
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
  for (size_t c = 0; c < all.size(); ++c) {
    const char* name = all[c].name;
    const CopyResult& seen = sweep.at(c, deepest, middle, false);
    inside.rows.push_back({{name}});
    for (double v : {seen.begin.gradients.front(), seen.begin.gradients.back(), seen.end.gradients.front(),
                     seen.end.gradients.back(), seen.begin.stream.back(), seen.end.stream.back()})
      inside.rows.back().push_back(reports::printed_cell("%.3g", v));
    std::vector<reports::ChartLine> lines;
    for (size_t rate = 0; rate <= top; ++rate)
      lines.push_back({text("rate ", sweep.rates[rate]), css[rate], sweep.at(c, 0, rate, false).losses});
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
  // Judged: Pre-LN and Post-LN, indices 0 and 1, with the fewest blocks.
  const size_t judged = o.full ? top - 1 : top;
  const double cold = sweep.mean_loss(1, 0, judged, false), warm = sweep.mean_loss(1, 0, judged, true),
               pre = sweep.mean_loss(0, 0, judged, false);
  r.confirmed = !(cold < kLearned) && warm < kLearned && pre < kLearned;
  r.measured = text("With ", sweep.depths[0], " blocks at rate ", sweep.rates[judged], " Post-LN ends at ", shown(cold),
                    " without warm-up and at ", shown(warm), " with it, Pre-LN at ", shown(pre),
                    " without. Below 0.5 only with warm-up: ", need.empty() ? "none" : need,
                    "; not with it either: ", never.empty() ? "none" : never, ".");
  r.refuted = text("a Post-LN that learns at rate ", sweep.rates[judged],
                   " without warm-up or does not with it, or a Pre-LN that does not without");
  return r;
}

}  // namespace isonorm::papers
