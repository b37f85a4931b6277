#include "reports/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/error.h"

namespace isonorm::reports {
namespace {

constexpr double kLabelGap = 6, kLabelHeight = 14, kNarrow = 200;  // px: labels, and the width of a narrow plot area
constexpr size_t kTicks = 7;  // maximum number of tick labels on the horizontal axis

// The position of a step across the plot area, from 0 to 1.
double across(const Chart& chart, double step) { return (step - 1) / std::max(1, chart.steps - 1); }

double plot_height(const Chart& chart) {
  const Margins m = chart.margins();
  return chart.height - m.top - m.bottom;
}

// Maps step and value to the coordinates of the paths.
struct Scale {
  const Chart& chart;
  double height = plot_height(chart);

  double x(double step) const { return kAcross * across(chart, step); }
  double y(double value) const {
    const double v = std::clamp(value, chart.low, chart.high);
    const double part = chart.log_scale ? std::log(v / chart.low) / std::log(chart.high / chart.low)
                                        : (v / 2 - chart.low / 2) / (chart.high / 2 - chart.low / 2);  // no overflow
    return height * (1 - part);
  }
};

void append_point(std::string& path, char command, double x, double y) {
  append_printed(path, "%c%.1f %.1f", command, x, y);
}

std::string line_path(const Scale& scale, const std::vector<double>& values) {
  std::string path;
  bool drawing = false;
  for (size_t t = 0; t < values.size(); ++t) {
    const bool finite = std::isfinite(values[t]);
    if (finite) append_point(path, drawing ? 'L' : 'M', scale.x(t + 1.0), scale.y(values[t]));
    drawing = finite;
  }
  return path;
}

// Runs along the upper curve and back along the lower one.
std::string band_path(const Scale& scale, const ChartBand& band) {
  const size_t n = std::min(band.low.size(), band.high.size());
  std::string path;
  for (size_t t = 0; t < n; ++t)
    if (std::isfinite(band.high[t]))
      append_point(path, path.empty() ? 'M' : 'L', scale.x(t + 1.0), scale.y(band.high[t]));
  for (size_t t = n; t-- > 0;)
    if (std::isfinite(band.low[t]) && !path.empty()) append_point(path, 'L', scale.x(t + 1.0), scale.y(band.low[t]));
  return path.empty() ? path : path + "Z";
}

// Tick labels of the vertical axis: text and y.
std::vector<std::pair<std::string, double>> values_named(const Chart& chart, const Scale& scale) {
  std::vector<std::pair<std::string, double>> ticks;
  if (chart.log_scale) {
    const int first = static_cast<int>(std::lround(std::log10(chart.low)));
    const int last = static_cast<int>(std::lround(std::log10(chart.high)));
    const int every = std::max(1, static_cast<int>(std::ceil((last - first) / 8.0)));
    for (int e = last; e >= first; e -= every) ticks.emplace_back(power_of_ten(e), scale.y(std::pow(10.0, e)));
  } else {
    for (double v : round_ticks(chart.low, chart.high, 6)) ticks.emplace_back(text(v), scale.y(v));
  }
  return ticks;
}

// Tick labels of the horizontal axis: text and step.
std::vector<std::pair<std::string, int>> steps_named(const Chart& chart) {
  std::vector<std::pair<std::string, int>> ticks;
  if (const size_t n = chart.ticks.size(); n > 0) {
    for (size_t i = 0; i < n; i += (n + kTicks - 1) / kTicks)
      ticks.emplace_back(chart.ticks[i], static_cast<int>(i) + 1);
    return ticks;
  }
  ticks.emplace_back("1", 1);
  for (double v : round_ticks(1, chart.steps, 4))
    if (const int step = static_cast<int>(v); step == v && across(chart, step) > 0.15)
      ticks.emplace_back(text(step), step);
  return ticks;
}

void append_text(std::string& out, double part, double y, const char* attributes, const std::string& words) {
  append_printed(out, "<text x=\"%.2f%%\" y=\"%.1f\" %s>", 100 * part, y, attributes);
  out += escaped(words) + "</text>\n";
}

// Writes the label of each line at its end. A label that would cover another moves down; if the labels reach the axis,
// they move up.
void append_labels(std::string& out, const Chart& chart, const Scale& scale) {
  std::vector<std::pair<double, const ChartLine*>> labels;
  for (const ChartLine& line : chart.lines)
    if (!line.label.empty() && !line.values.empty() && std::isfinite(line.values.back()))
      labels.emplace_back(scale.y(line.values.back()), &line);
  std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < labels.size(); ++i)
    labels[i].first = std::max(labels[i].first, labels[i - 1].first + kLabelHeight);
  double lowest = scale.height;
  for (size_t i = labels.size(); i-- > 0; lowest -= kLabelHeight) labels[i].first = std::min(labels[i].first, lowest);
  for (const auto& [y, line] : labels)
    append_text(out, across(chart, static_cast<double>(line->values.size())), y + 4, "class=\"label\" dx=\"6\"",
                line->label);
}

}  // namespace

void fit_axis(Chart& chart) {
  std::vector<double> all;
  for (const ChartLine& line : chart.lines) {
    all.insert(all.end(), line.values.begin(), line.values.end());
    chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  }
  std::erase_if(all, [](double v) { return !std::isfinite(v); });
  if (all.empty()) return;
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  constexpr double kLargest = std::numeric_limits<double>::max(), kLeast = 4 * std::numeric_limits<double>::min();
  const double range = *high > *low ? *high - *low : std::max(std::abs(*high), 1e-6);
  const double margin = std::max(0.04 * range, kLeast);
  chart.low = std::max(*low < 0 ? -kLargest : 0.0, *low - margin);
  chart.high = std::min(*high + margin, kLargest);
}

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(1, count);
  if (!(rough > 0) || !std::isfinite(rough)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double mantissa = rough / power;
  const double step = power * (mantissa > 5 ? 10 : mantissa > 2 ? 5 : mantissa > 1 ? 2 : 1);
  if (!(std::max(std::abs(low), std::abs(high)) / step < 0x1p50)) return {};  // neighbouring ticks would be equal
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && std::isfinite(k * step); ++k)
    ticks.push_back(k * step + 0.0);  // avoids -0
  return ticks;
}

Margins Chart::margins() const {
  Margins m;
  for (const ChartLine& line : lines) {
    if (line.label.empty()) continue;
    const double room = (1 - across(*this, static_cast<double>(line.values.size()))) * kNarrow;
    m.right = std::max(m.right, kLabelGap + text_width(line.label) - room);
  }
  return m;
}

std::string svg_chart(const Chart& chart) {
  check(chart.low < chart.high && (!chart.log_scale || chart.low > 0), "svg_chart: the axis runs from ", chart.low,
        " to ", chart.high);
  const Scale scale{chart};
  const auto values = values_named(chart, scale);
  const auto steps = steps_named(chart);
  const auto path = [](const std::string& css, const std::string& d, const std::string& name) {
    return text("<path class=\"", css, "\" d=\"", d, "\"><title>", escaped(name), "</title></path>\n");
  };
  std::string out = text("<svg class=\"plot\" role=\"img\" aria-label=\"", escaped(chart.title), "\">\n");
  out += begin_paths(scale.height);
  for (const auto& [label, y] : values) append_printed(out, "<path class=\"grid\" d=\"M0 %.1fH%.0f\"/>", y, kAcross);
  append_printed(out, "<path class=\"axis\" d=\"M0 %.1fH%.0f\"/>", scale.height, kAcross);
  for (const auto& [label, step] : steps)
    append_printed(out, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", scale.x(step), scale.height);
  out += '\n';
  for (const ChartBand& band : chart.bands) out += path(band.css, band_path(scale, band), band.name);
  for (const ChartLine& line : chart.lines) out += path(line.css, line_path(scale, line.values), line.name);
  if (chart.mark > 0)
    append_printed(out, "<path class=\"limit\" d=\"M%.1f 0V%.1f\"/>\n", scale.x(chart.mark), scale.height);
  out += kEndPaths;
  for (const auto& [label, y] : values) append_text(out, 0, y + 4, "dx=\"-6\" text-anchor=\"end\"", label);
  for (const auto& [label, step] : steps)
    append_text(out, across(chart, step), scale.height + 17, "text-anchor=\"middle\"", label);
  append_text(out, 0.5, scale.height + 34, "text-anchor=\"middle\"", chart.axis);
  append_labels(out, chart, scale);
  return out + "</svg>\n";
}

}  // namespace isonorm::reports
