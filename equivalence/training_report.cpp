#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "equivalence/figure.h"
#include "equivalence/printed.h"
#include "equivalence/report.h"
#include "equivalence/report_page.h"
#include "equivalence/summary.h"

namespace isonorm::equivalence {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // interrupts a line

// The mean over the `window` values up to each; from the window-th on, so that none is a mean of fewer.
std::vector<double> running_mean(const std::vector<double>& values, size_t window) {
  std::vector<double> means(values.size(), kNothing);
  for (size_t t = window; t <= values.size(); ++t) {
    double sum = 0;
    for (size_t i = t - window; i < t; ++i) sum += values[i];
    means[t - 1] = sum / static_cast<double>(window);
  }
  return means;
}

// A value per step, straight between two evaluations.
std::vector<double> between(const std::vector<Evaluation>& evaluations) {
  std::vector<double> values(static_cast<size_t>(evaluations.back().step), kNothing);
  for (size_t i = 1; i < evaluations.size(); ++i) {
    const Evaluation &a = evaluations[i - 1], &b = evaluations[i];
    for (int step = std::max(1, a.step); step <= b.step; ++step) {
      const double part = static_cast<double>(step - a.step) / (b.step - a.step);
      values[static_cast<size_t>(step - 1)] = a.loss + part * (b.loss - a.loss);
    }
  }
  return values;
}

Figure loss_figure(const TrainingResult& training) {
  const size_t before = static_cast<size_t>(training.first_step - 1);
  const size_t window = std::max<size_t>(1, training.losses.size() / 100);
  const auto placed = [&](std::vector<double> values) {
    values.insert(values.begin(), before, kNothing);
    return values;
  };
  Chart chart{.title = "Training loss per step", .width = 990, .height = 360};
  std::vector<LegendItem> legend;
  const auto add = [&](const std::string& name, const std::string& css, std::vector<double> values) {
    chart.lines.push_back({name, css, std::move(values)});
    legend.push_back({css, name});
  };
  if (window > 1) add("training loss", "raw", placed(training.losses));
  add(window > 1 ? text("its mean over ", window, " steps") : "training loss", "other",
      placed(running_mean(training.losses, window)));
  if (training.evaluations.size() > 1) add("test loss", "bound", between(training.evaluations));
  fit_loss_axis(chart);
  return {.name = "loss", .heading = "Loss", .legend = legend, .panels = {{.drawing = chart}}};
}

TextTable evaluation_table(const TrainingResult& training) {
  const bool images = training.options.model == ModelKind::vit;
  TextTable table{.heading = "Test",
                  .columns = {"after step", "loss"},
                  .caption = text("On ", images ? "images" : "characters", " that the training never saw.")};
  if (!images) table.columns.push_back("perplexity");
  table.columns.insert(table.columns.end(), {"accuracy", "right"});
  for (const Evaluation& e : training.evaluations) {
    std::vector<TextCell>& row = table.rows.emplace_back();
    row = {{text(e.step)}, {printed("%.4f", e.loss)}};
    if (!images) row.push_back({printed("%.3f", std::exp(e.loss))});
    row.push_back({printed("%.2f %%", 100 * e.accuracy())});
    row.push_back({text(e.right, " of ", e.predictions)});
  }
  return table;
}

}  // namespace

std::string report_html(const TrainingResult& training) {
  const ProofOptions& o = training.options;
  std::string out = text("<h1>", escaped(training.form), ", trained</h1>\n<p class=\"soft\">",
                         o.model == ModelKind::vit ? "A Vision Transformer" : "A language model", ". ",
                         name_of(o.dtype), ", ", name_of(o.optimizer), ", ", o.step_count(), " steps of ", o.batch,
                         " examples.</p>\n<p><strong>", escaped(summary_sentence(training)), ".</strong></p>\n");
  if (training.first_step > 1)
    out += text("<p>Gone on with after step ", training.first_step - 1, ": what was before is not shown.</p>\n");
  out += figure_html(loss_figure(training));
  if (!training.evaluations.empty()) out += to_html(evaluation_table(training));
  return report_page(text("isonorm train: ", training.form),
                     out + repeat_html(training.manifest) + environment_html(training.manifest, training.seconds));
}

}  // namespace isonorm::equivalence
