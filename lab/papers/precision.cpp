// Effect of mixed precision on the loss curve, compared with the same training in f32 and f32 trainings from other
// initial weights.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/printed.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "streams/parametrize.h"
#include "training/model_options.h"

namespace isonorm::papers {
namespace {

using nn::Precision;

constexpr int kSteps = 120, kLast = kSteps / 4;  // number of steps; the last kLast losses are averaged
constexpr int kOthers = 3;                       // f32 trainings from other weights

struct Way {
  const char *name, *css;
  nn::MixedPrecision precision;
  DType dtype = DType::f32;  // dtype of the parameters
};
constexpr Way kFull{"f32", "nested other", {}},
    kWays[] = {{"bf16", "nested rms", {Precision::bf16, Precision::full}},
               {"bf16, stream too", "nested crms", {Precision::bf16, Precision::bf16}},
               {"bf16 without masters", "nested negative", {}, DType::bf16}};
constexpr size_t kJudged = 2;  // the first two are judged

training::TrainingOptions small_language_model(uint64_t seed) {
  training::TrainingOptions o;
  o.model = {training::kGpt, {.width = 48, .depth = 2, .heads = 4}, {{"context", 32}, {"head_bias", true}}};
  o.letters = 0, o.seed = seed, o.batch = 8;
  o.lr = 3e-3, o.warmup = 10, o.steps = kSteps, o.dtype = DType::f32;
  return o;
}

// The losses of a training on the batches of o.seed. The initial weights are drawn from `weights_seed`.
std::vector<double> losses_of(const ExperimentOptions& options, const training::TrainingOptions& o, const Way& way,
                              uint64_t weights_seed) {
  training::TrainingOptions mine = o;
  mine.model.transformer().precision = way.precision, mine.dtype = way.dtype;
  training::Source source(mine);
  manual_seed(weights_seed);
  const auto model = build_model(source.options(), {.form = streams::Form::rms_norm});
  const auto optimizer = build_optimizer(mine, model->named_parameters());
  training::Step step(*model, *optimizer, training::cross_entropy_of, {.limits = o.limits()});
  const optim::Schedule rates{.peak = o.lr, .warmup = o.warmup_steps(), .steps = kSteps};
  training::Loop loop(
      step, [&](int64_t t) { return source.batch(t); }, rates);
  std::vector<double> losses;
  loop.every(1, [&](const training::TrainingStep& s) { return options.go_on(), losses.push_back(s.loss), true; });
  loop.run(kSteps);
  return losses;
}

double last_mean(const std::vector<double>& losses) {
  return std::accumulate(losses.end() - kLast, losses.end(), 0.0) / kLast;
}

std::string fixed(double x) { return printed("%.4f", x); }

}  // namespace

ExperimentResult precision(const ExperimentOptions& options) {
  const training::TrainingOptions o = small_language_model(options.seed);
  ExperimentResult r;
  options.tell(text("training: ", kFull.name));
  const std::vector<double> full = losses_of(options, o, kFull, o.seed);
  const double reference = last_mean(full);
  double spread = 0;
  for (int i = 1; i <= kOthers; ++i) {
    options.tell("training: f32 from other weights");
    spread = std::max(spread,
                      std::abs(last_mean(losses_of(options, o, kFull, o.seed + static_cast<uint64_t>(i))) - reference));
  }
  reports::TextTable table{.heading = "Losses",
                           .columns = {"training"},
                           .caption = text("Means over ", kLast,
                                           " steps up to the one that the column names; the last column is the "
                                           "difference of the last mean from f32's. f32 from ",
                                           kOthers, " other initial weights: up to ", fixed(spread), " from it.")};
  for (int step = kLast; step <= kSteps; step += kLast) table.columns.push_back(text("step ", step));
  table.columns.push_back("minus f32");
  reports::Chart chart{.title = "Training loss in f32 and in mixed precision", .steps = kSteps, .width = 660};
  double worst = 0;
  const auto add = [&](const Way& way, const std::vector<double>& losses, bool judged) {
    const double difference = last_mean(losses) - reference;
    if (judged) worst = std::max(worst, std::abs(difference));
    table.rows.push_back({{way.name}});
    for (int end = kLast; end <= kSteps; end += kLast)
      table.rows.back().push_back(reports::printed_cell("%.4f", last_mean({losses.begin(), losses.begin() + end})));
    const reports::Tone tone = std::abs(difference) < spread ? reports::Tone::good : reports::Tone::bad;
    table.rows.back().push_back(reports::printed_cell("%+.4f", difference, judged ? tone : reports::Tone::plain));
    chart.lines.push_back({way.name, way.css, losses});
  };
  add(kFull, full, false);
  for (size_t i = 0; i < std::size(kWays); ++i) {
    options.tell(text("training: ", kWays[i].name));
    add(kWays[i], losses_of(options, o, kWays[i], o.seed), i < kJudged);
  }
  reports::fit_axis(chart);
  r.confirmed = worst < spread;
  r.measured = text("The mean loss of the last ", kLast, " of ", kSteps, " steps is ", fixed(reference),
                    " in f32; in mixed precision it differs from that by at most ", fixed(worst),
                    ", from other initial weights by up to ", fixed(spread), ".");
  r.refuted = "a training in mixed precision whose last losses differ from f32's by more than those from other weights";
  r.tables.push_back(std::move(table));
  r.figures = {{.name = "loss",
                .heading = "Loss",
                .panels = {panel_of(std::move(chart))},
                .caption = "Training loss per step, from the same weights on the same batches."}};
  return r;
}

}  // namespace isonorm::papers
