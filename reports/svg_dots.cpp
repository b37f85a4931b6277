#include "reports/svg.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/printed.h"

namespace isonorm::reports {
namespace {

constexpr double kBetween = 7;    // px between the dots of a row
constexpr double kLongest = 100;  // px; a longer label goes above its row
constexpr double kAbove = 15;     // px of a label above its row
constexpr int kMostParts = 6;     // maximum number of tick intervals

bool labels_above(const DotPlot& plot) {
  return std::any_of(plot.rows.begin(), plot.rows.end(),
                     [](const DotRow& row) { return text_width(row.label) > kLongest; });
}

double row_height(const DotPlot& plot, const DotRow& row) {
  return kBetween * std::max<double>(2, static_cast<double>(row.dots.size())) + 8 + (labels_above(plot) ? kAbove : 0);
}

// The position of a value across the plot area, from 0 to 1.
double across(const DotPlot& plot, double value) {
  return std::log(std::clamp(value, plot.low, plot.high) / plot.low) / std::log(plot.high / plot.low);
}

// The label of a zone, aligned to the border of the plot if the zone reaches it, else centred.
std::string zone_name(const DotPlot& plot, const DotZone& zone) {
  const double from = across(plot, zone.low), to = across(plot, zone.high);
  const bool left = from <= 0, right = to >= 1;
  return printed("<text x=\"%.2f%%\" y=\"-8\" text-anchor=\"%s\">", left ? 0.0 : 100 * (right ? 1 : (from + to) / 2),
                 left    ? "start"
                 : right ? "end"
                         : "middle") +
         escaped(zone.label) + "</text>\n";
}

}  // namespace

Margins DotPlot::margins() const {
  Margins m{.left = 14, .right = 14, .top = 22};
  if (!labels_above(*this))
    for (const DotRow& row : rows) m.left = std::max(m.left, text_width(row.label) + 12);
  return m;
}

int DotPlot::height() const {
  double sum = margins().top + margins().bottom;
  for (const DotRow& row : rows) sum += row_height(*this, row);
  return static_cast<int>(std::ceil(sum));
}

std::string svg_dots(const DotPlot& plot) {
  check(plot.low > 0 && plot.low < plot.high, "svg_dots: the axis runs from ", plot.low, " to ", plot.high);
  const Margins m = plot.margins();
  const double bottom = plot.height() - m.top - m.bottom;
  const bool above = labels_above(plot);
  const int first = static_cast<int>(std::lround(std::log10(plot.low)));
  const int last = static_cast<int>(std::lround(std::log10(plot.high)));
  const int every = std::max(1, static_cast<int>(std::ceil((last - first) / static_cast<double>(kMostParts))));

  std::string paths = begin_paths(bottom), words;
  for (const DotZone& zone : plot.zones) {
    const double from = kAcross * across(plot, zone.low), to = kAcross * across(plot, zone.high);
    paths += text("<path class=\"zone ", zone.css, "\" d=\"");
    append_printed(paths, "M%.1f 0H%.1fV%.1fH%.1fZ\"/>\n", from, to, bottom, from);
    if (!zone.label.empty()) words += zone_name(plot, zone);
  }
  for (int e = last; e >= first; e -= every) {
    const double part = across(plot, std::pow(10.0, e));
    append_printed(paths, "<path class=\"grid\" d=\"M%.1f 0V%.1f\"/>\n", kAcross * part, bottom);
    append_printed(words, "<text x=\"%.2f%%\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", 100 * part, bottom + 17,
                   power_of_ten(e).c_str());
  }
  double y = 0;
  for (const DotRow& row : plot.rows) {
    const double height = row_height(plot, row), middle = y + (height + (above ? kAbove : 0)) / 2;
    if (above)
      append_printed(words, "<text class=\"label\" x=\"0\" y=\"%.1f\">", y + kAbove);
    else
      append_printed(words, "<text class=\"label\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">", middle + 4);
    words += escaped(row.label) + "</text>\n";
    const double offset = (static_cast<double>(row.dots.size()) - 1) / 2;
    for (size_t i = 0; i < row.dots.size(); ++i) {
      const Dot& dot = row.dots[i];
      if (!std::isfinite(dot.value)) continue;
      words += text("<circle class=\"dot ", dot.solid ? "solid " : "", dot.css, "\"");
      append_printed(words, " cx=\"%.2f%%\" cy=\"%.1f\" r=\"3.6\"><title>", 100 * across(plot, dot.value),
                     middle + (static_cast<double>(i) - offset) * kBetween);
      words += escaped(dot.name) + "</title></circle>\n";
    }
    y += height;
    append_printed(paths, "<path class=\"grid\" d=\"M0 %.1fH%.0f\"/>\n", y, kAcross);
  }
  append_printed(words, "<text x=\"50%%\" y=\"%.1f\" text-anchor=\"middle\">", bottom + 34);
  words += escaped(plot.axis) + "</text>\n";
  return text("<svg class=\"plot\" role=\"img\" aria-label=\"", escaped(plot.title), "\">\n", paths, kEndPaths, words,
              "</svg>\n");
}

}  // namespace isonorm::reports
