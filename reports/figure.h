// A figure of a report: charts side by side under a heading, with legends and a caption. One figure is part of a page,
// or an SVG file of its own for a text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reports/svg.h"
#include "reports/svg_dots.h"

namespace isonorm::reports {

struct LegendItem {
  std::string css, name;
};

struct Panel {
  std::string heading = {};  // none where empty
  std::vector<LegendItem> legend = {};
  std::variant<Chart, DotPlot> drawing = {};

  int width() const;  // these two with margins
  int height() const;
  Margins margins() const;
  std::string svg() const;  // of the plot area
};

// A chart with a legend of its lines.
Panel panel_of(Chart chart, std::string heading = {});

struct Figure {
  std::string name;      // of its file, without the ending
  std::string heading;   // above the figure
  std::string css = {};  // how a page lays out the panels: "loss" (2 : 1), "two", "three", "" (one below the other)
  std::vector<LegendItem> legend = {};  // of all panels
  std::vector<Panel> panels = {};
  std::string caption = {};
};

// Heading and <figure>.
std::string figure_html(const Figure& figure);

// An SVG document with its own style sheet, for light and dark: the panels in one row with their headings and legends
// (one below the other where css is empty).
std::string figure_svg(const Figure& figure);

}  // namespace isonorm::reports
