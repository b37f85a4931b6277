#include "equivalence/svg.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "equivalence/svg_text.h"

namespace isonorm::equivalence {
namespace {

constexpr double kLeft = 52, kRight = 12, kTop = 10, kBottom = 38;  // margins of the plot area

// Maps step and value to the drawing's coordinates.
struct Scale {
  const Chart& chart;

  double x(double step) const {
    return kLeft + (chart.width - kLeft - kRight) * (step - 1) / std::max(1, chart.steps - 1);
  }
  double y(double value) const {
    const double v = std::clamp(value, chart.low, chart.high);
    const double part = chart.log_scale ? std::log(v / chart.low) / std::log(chart.high / chart.low)
                                        : (v - chart.low) / (chart.high - chart.low);
    return chart.height - kBottom - part * (chart.height - kTop - kBottom);
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

// There along the upper curve, back along the lower one.
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

void append_tick_y(std::string& out, const Chart& chart, double y, const std::string& label) {
  append_printed(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", kLeft, y, chart.width - kRight);
  append_printed(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", kLeft - 6, y + 4, label.c_str());
}

void append_axes(std::string& out, const Chart& chart, const Scale& scale) {
  if (chart.log_scale) {
    const int first = static_cast<int>(std::lround(std::log10(chart.low)));
    const int last = static_cast<int>(std::lround(std::log10(chart.high)));
    const int every = std::max(1, static_cast<int>(std::ceil((last - first) / 8.0)));
    for (int e = last; e >= first; e -= every) append_tick_y(out, chart, scale.y(std::pow(10.0, e)), power_of_ten(e));
  } else {
    for (double v : round_ticks(chart.low, chart.high, 6)) append_tick_y(out, chart, scale.y(v), text(v));
  }
  const double bottom = chart.height - kBottom;
  append_printed(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", kLeft, bottom, chart.width - kRight);
  const auto step_label = [&](int step) {
    const std::string label = chart.ticks.empty() ? text(step) : escaped(chart.ticks[static_cast<size_t>(step) - 1]);
    append_printed(out, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", scale.x(step), bottom);
    append_printed(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", scale.x(step), bottom + 17);
    out += label + "</text>\n";
  };
  step_label(1);
  if (!chart.ticks.empty()) {
    for (int step = 2; step <= static_cast<int>(chart.ticks.size()); ++step) step_label(step);
  } else {
    const int count = std::max(2, chart.width / 110);
    for (double v : round_ticks(1, chart.steps, count)) {
      const int step = static_cast<int>(v);
      if (step == v && scale.x(step) - scale.x(1) > 30) step_label(step);
    }
  }
  append_printed(out, "<text class=\"name\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                 (kLeft + chart.width - kRight) / 2, chart.height - 4);
  out += escaped(chart.axis) + "</text>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(1, count);
  if (!(rough > 0) || !std::isfinite(rough)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double mantissa = rough / power;
  const double step = power * (mantissa > 5 ? 10 : mantissa > 2 ? 5 : mantissa > 1 ? 2 : 1);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string svg_chart(const Chart& chart) {
  check(chart.low < chart.high && (!chart.log_scale || chart.low > 0), "svg_chart: the axis runs from ", chart.low,
        " to ", chart.high);
  const Scale scale{chart};
  std::string out;
  append_printed(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", chart.width, chart.height);
  out += escaped(chart.title) + "\">\n";
  append_axes(out, chart, scale);
  for (const ChartBand& band : chart.bands)
    out += text("<path class=\"", band.css, "\" d=\"", band_path(scale, band), "\"><title>", escaped(band.name),
                "</title></path>\n");
  for (const ChartLine& line : chart.lines)
    out += text("<path class=\"", line.css, "\" d=\"", line_path(scale, line.values), "\"><title>", escaped(line.name),
                "</title></path>\n");
  if (chart.mark > 0)
    append_printed(out, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>\n", scale.x(chart.mark), kTop,
                   chart.height - kBottom);
  std::vector<double> taken;  // heights of labels so far: one that would cover another moves below it
  for (const ChartLine& line : chart.lines) {
    if (line.label.empty() || line.values.empty() || !std::isfinite(line.values.back())) continue;
    double y = scale.y(line.values.back()) + 4;
    for (double other : taken)
      if (std::abs(y - other) < 14) y = other + 14;
    taken.push_back(y);
    append_printed(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">",
                   scale.x(static_cast<double>(line.values.size())) + 6, y);
    out += escaped(line.label) + "</text>\n";
  }
  return out + "</svg>\n";
}

}  // namespace isonorm::equivalence
