// E14: time of single norms, forward and backward, compared with LayerNorm.
#include <algorithm>

#include "core/printed.h"
#include "core/system/stopwatch.h"
#include "isonorm.h"
#include "lab/papers/experiment.h"
#include "lab/papers/nets/deep_net.h"
#include "lab/papers/timing/turns.h"

namespace isonorm::papers {
namespace {

constexpr int64_t kRows = 788;  // rows of four ViT images, 197 each
constexpr int64_t kWidths[] = {192, 384, 768, 1024};
constexpr int kTimes = 20;  // passes, forward and backward, per measurement

// less: number of entries that a row has fewer than LayerNorm's. eps is the default of NormOptions.
struct Kind {
  const char *name, *css;
  Tensor (*norm)(const Tensor&, const Tensor&, const Tensor&, NormOptions);
  int64_t less = 0;
  double p = 1;
};
constexpr Kind kKinds[] = {{"LayerNorm", "reference", layer_norm},
                           {"RMSNorm", "rms", rms_norm},
                           {"RMSNorm of 6.25 %", "plain", rms_norm, 0, 0.0625},
                           {"CRMSNorm of d - 1", "crms", crms_norm, 1},
                           {"CRMSNorm of d", "other", crms_norm},
                           {"isometric, of d - 1", "isometric", crms_isometric_norm, 1}};
constexpr size_t kRms = 1, kCrms = 4;

std::function<double()> work_of(const Kind& k, int64_t width) {
  Generator g{.seed = 1};
  const Tensor x = require_grad(randn({kRows, width - k.less}, {}, g)), dy = randn({kRows, width - k.less}, {}, g);
  return [=, &k] {
    const Stopwatch watch;
    for (int i = 0; i < kTimes; ++i) grad({k.norm(x, {}, {}, {.p = k.p})}, {x}, {dy});
    return watch.seconds() / kTimes;
  };
}

}  // namespace

ExperimentResult norm_cost(const ExperimentOptions& o) {
  ExperimentResult r;
  reports::TextTable table{
      .heading = "Times of norms, forward and backward, relative to LayerNorm",
      .columns = {"norm"},
      .caption = text("Medians of the ratio, with their intervals of 99.8 %, in the same round; ", kRows,
                      " rows in f32, no gain, ", machine_text(), ". LayerNorm itself in microseconds.")};
  std::vector<Curve> curves;
  std::vector<double> widths;
  for (const Kind& k : kKinds) table.rows.push_back({{k.name}}), curves.push_back({k.name, k.css, {}});
  Lead rms, crms;
  for (const int64_t width : kWidths) {
    o.tell(text("timing rows of ", width));
    std::vector<std::function<double()>> works;
    for (const Kind& k : kKinds) works.push_back([&o, work = work_of(k, width)] { return o.go_on(), work(); });
    const Turns t = in_turns(works, {.seconds = o.full ? 20.0 : 2.0, .fewest = 20, .most = 2000});
    widths.push_back(static_cast<double>(width));
    table.columns.push_back(text("d = ", width));
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      table.rows[i].push_back(i == 0 ? reports::printed_cell("%.1f us", 1e6 * t.seconds) : ratio_cell(t.ratio[i], 2));
      curves[i].values.push_back(t.ratio[i].median);
    }
    rms.count(t.ratio[kRms], t.ratio[0]);
    crms.count(t.ratio[kCrms], t.ratio[0]);
  }
  const auto span = [&](size_t i) {
    const auto [low, high] = std::minmax_element(curves[i].values.begin(), curves[i].values.end());
    return printed("%.2f to %.2f", *low, *high);
  };
  r.confirmed = rms.ahead == std::ssize(kWidths) && crms.ahead == std::ssize(kWidths);
  r.undecided = !r.confirmed && !rms.lost() && !crms.lost();
  r.measured =
      text("RMSNorm takes ", span(kRms), " of LayerNorm's time, forward and backward, CRMSNorm with d entries ",
           span(kCrms), ", with d - 1 entries ", span(3), ".");
  r.refuted =
      "more widths for which either is slower than LayerNorm beyond the intervals than widths for which it is faster";
  r.tables = {std::move(table)};
  r.figures = {curve_figure("norm-cost", "Time divided by LayerNorm's",
                            "Forward and backward, by the width of a row; below 1: faster.", "width", widths, curves)};
  return r;
}

}  // namespace isonorm::papers
