#include "equivalence/svg_dots.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "equivalence/svg.h"
#include "equivalence/svg_text.h"

namespace isonorm::equivalence {
namespace {

constexpr double kTop = 22, kBottom = 38, kRight = 14, kBetween = 7;  // margins; heights between the dots of a row

double row_height(const DotRow& row) {
  return kBetween * std::max<double>(2, static_cast<double>(row.dots.size())) + 8;
}

double x_of(const DotPlot& plot, double value) {
  const double part = std::log(std::clamp(value, plot.low, plot.high) / plot.low) / std::log(plot.high / plot.low);
  return plot.left + part * (plot.width - plot.left - kRight);
}

}  // namespace

int DotPlot::height() const {
  double sum = kTop + kBottom;
  for (const DotRow& row : rows) sum += row_height(row);
  return static_cast<int>(std::ceil(sum));
}

std::string svg_dots(const DotPlot& plot) {
  check(plot.low > 0 && plot.low < plot.high, "svg_dots: the axis runs from ", plot.low, " to ", plot.high);
  const double bottom = plot.height() - kBottom;
  std::string out;
  append_printed(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", plot.width, plot.height());
  out += escaped(plot.title) + "\">\n";
  for (const DotZone& zone : plot.zones) {
    const double from = x_of(plot, zone.low), to = x_of(plot, zone.high);
    out += text("<path class=\"zone ", zone.css, "\" d=\"");
    append_printed(out, "M%.1f %.1fH%.1fV%.1fH%.1fZ\"/>", from, kTop, to, bottom, from);
    append_printed(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (from + to) / 2, kTop - 8);
    out += escaped(zone.label) + "</text>\n";
  }
  const int first = static_cast<int>(std::lround(std::log10(plot.low)));
  const int last = static_cast<int>(std::lround(std::log10(plot.high)));
  const int every = std::max(1, static_cast<int>(std::ceil((last - first) / 9.0)));
  for (int e = last; e >= first; e -= every) {
    const double x = x_of(plot, std::pow(10.0, e));
    append_printed(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, kTop, bottom);
    append_printed(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, bottom + 17,
                   power_of_ten(e).c_str());
  }
  double y = kTop;
  for (const DotRow& row : plot.rows) {
    const double height = row_height(row), middle = y + height / 2;
    append_printed(out, "<text class=\"label\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", plot.left - 10, middle + 4);
    out += escaped(row.label) + "</text>\n";
    const double offset = (static_cast<double>(row.dots.size()) - 1) / 2;
    for (size_t i = 0; i < row.dots.size(); ++i) {
      const Dot& dot = row.dots[i];
      if (!std::isfinite(dot.value)) continue;
      out += text("<circle class=\"dot ", dot.solid ? "solid " : "", dot.css, "\"");
      append_printed(out, " cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\"><title>", x_of(plot, dot.value),
                     middle + (static_cast<double>(i) - offset) * kBetween);
      out += escaped(dot.name) + "</title></circle>\n";
    }
    y += height;
    append_printed(out, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>\n", plot.left, y, plot.width - kRight);
  }
  append_printed(out, "<text class=\"name\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                 (plot.left + plot.width - kRight) / 2, plot.height() - 4);
  return out + escaped(plot.axis) + "</text>\n</svg>\n";
}

}  // namespace isonorm::equivalence
