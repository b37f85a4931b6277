#include "reports/figure.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/printed.h"
#include "reports/style.h"
#include "reports/svg.h"

namespace isonorm::reports {
namespace {

constexpr double kMargin = 18, kGap = 22, kLine = 18;  // of a document; kLine: height of a line of heading or legend

bool is_dot(const LegendItem& item) { return item.css.starts_with("dot"); }

// The symbol of a legend item, 34 wide and 12 high.
std::string legend_shape(const LegendItem& item) {
  if (is_dot(item)) return text("<circle class=\"", item.css, "\" cx=\"17\" cy=\"6\" r=\"3.6\"/>");
  const char* shape = item.css == "band" ? "M0 0H34V12H0Z" : "M1 6H33";
  // The innermost of the nested lines is pale: draw the line around it, too.
  const std::string around =
      item.css == "nested isometric" ? text("<path class=\"nested crms\" d=\"", shape, "\"/>") : "";
  return text(around, "<path class=\"", item.css, "\" d=\"", shape, "\"/>");
}

std::string legend_html(const std::vector<LegendItem>& legend) {
  if (legend.empty()) return "";
  std::string out = "<ul class=\"legend\">\n";
  for (const LegendItem& item : legend)
    out += text("<li><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\">", legend_shape(item), "</svg>",
                escaped(item.name), "</li>\n");
  return out + "</ul>\n";
}

// Appends a legend to `out`, with lines broken at `width`. Returns its height.
double draw_legend(std::string& out, const std::vector<LegendItem>& legend, double left, double top, double width) {
  double x = 0, y = 0;
  for (const LegendItem& item : legend) {
    const double needed = 40 + text_width(item.name);
    if (x > 0 && x + needed > width) x = 0, y += kLine;
    append_printed(out, "<g transform=\"translate(%.1f %.1f)\">", left + x, top + y);
    out += legend_shape(item);
    out += text("<text x=\"40\" y=\"10\">", escaped(item.name), "</text></g>\n");
    x += needed + 18;
  }
  return legend.empty() ? 0 : y + kLine + 6;
}

// `element` ("<svg ...") with `attributes` inserted before its own.
std::string with_attributes(const std::string& element, const std::string& attributes) {
  return text("<svg ", attributes, element.substr(std::string_view("<svg").size()));
}

// A panel's drawing in an SVG document, its margins starting at (x, y).
std::string placed(const Panel& p, double x, double y) {
  const Margins m = p.margins();
  return with_attributes(p.svg(), printed("x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x + m.left, y + m.top,
                                          p.width() - m.left - m.right, p.height() - m.top - m.bottom));
}

// A panel's drawing in a page, as wide as its container.
std::string drawing_html(const Panel& p) {
  const Margins m = p.margins();
  return printed("<div style=\"padding: %.0fpx %.0fpx %.0fpx %.0fpx\">", m.top, m.right, m.bottom, m.left) +
         with_attributes(p.svg(), printed("width=\"100%%\" height=\"%.0f\"", p.height() - m.top - m.bottom)) + "</div>";
}

}  // namespace

int Panel::width() const {
  return std::visit([](const auto& d) { return d.width; }, drawing);
}
int Panel::height() const {
  if (const Chart* chart = std::get_if<Chart>(&drawing)) return chart->height;
  return std::get<DotPlot>(drawing).height();
}
Margins Panel::margins() const {
  return std::visit([](const auto& d) { return d.margins(); }, drawing);
}
std::string Panel::svg() const {
  if (const Chart* chart = std::get_if<Chart>(&drawing)) return svg_chart(*chart);
  return svg_dots(std::get<DotPlot>(drawing));
}

Panel panel_of(Chart chart, std::string heading) {
  Panel panel{.heading = std::move(heading)};
  for (const ChartLine& line : chart.lines) panel.legend.push_back({line.css, line.name});
  panel.drawing = std::move(chart);
  return panel;
}

std::string figure_html(const Figure& figure) {
  std::string out = text("<h2>", escaped(figure.heading), "</h2>\n<figure>\n", legend_html(figure.legend));
  out += text("<div class=\"charts", figure.css.empty() ? "" : " ", figure.css, "\">\n");
  for (const Panel& panel : figure.panels)
    out += text("<div>", panel.heading.empty() ? "" : text("<h3>", escaped(panel.heading), "</h3>\n"),
                legend_html(panel.legend), drawing_html(panel), "</div>\n");
  out += "</div>\n";
  if (!figure.caption.empty()) out += text("<figcaption>", escaped(figure.caption), "</figcaption>\n");
  return out + "</figure>\n";
}

std::string figure_svg(const Figure& figure) {
  const bool in_a_row = !figure.css.empty();
  double width = 0;
  for (const Panel& p : figure.panels)
    width = in_a_row ? width + (width > 0 ? kGap : 0) + p.width() : std::max<double>(width, p.width());
  std::string body;
  double top = kMargin + draw_legend(body, figure.legend, kMargin, kMargin, width);

  // In a row, all panels reserve the height of the tallest heading and legend, so that the drawings align.
  double x = kMargin, bottom = top;
  double above = 0;
  if (in_a_row)
    for (const Panel& p : figure.panels) {
      std::string ignored;
      above = std::max(above, (p.heading.empty() ? 0 : kLine) + draw_legend(ignored, p.legend, 0, 0, p.width()));
    }
  for (const Panel& p : figure.panels) {
    double y = in_a_row ? top : bottom + (bottom > top ? kGap : 0);
    const double begin = y;
    if (!p.heading.empty()) {
      append_printed(body, "<text class=\"heading\" x=\"%.1f\" y=\"%.1f\">", x, y + 12);
      body += escaped(p.heading) + "</text>\n";
      y += kLine;
    }
    y += draw_legend(body, p.legend, x, y, p.width());
    if (in_a_row) y = begin + above;
    body += placed(p, x, y);
    if (in_a_row) x += p.width() + kGap;
    bottom = std::max(bottom, y + p.height());
  }
  std::string out;
  append_printed(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\">\n",
                 width + 2 * kMargin, bottom + kMargin, width + 2 * kMargin);
  out += text("<style>", kChartStyle, "svg .heading { font-weight: 600; fill: var(--ink); }\n",
              "svg .paper { fill: var(--card); }\n</style>\n<title>", escaped(figure.heading), "</title>\n");
  append_printed(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>\n", width + 2 * kMargin,
                 bottom + kMargin);
  return out + body + "</svg>\n";
}

}  // namespace isonorm::reports
