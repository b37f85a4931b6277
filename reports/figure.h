// A figure of a report: charts side by side under a heading, with legends and a caption. It can be part of a page or an
// SVG file of its own.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reports/svg.h"

namespace isonorm::reports {

struct LegendItem {
  std::string css, name;
};

struct Panel {
  std::string heading = {};  // empty: none
  std::vector<LegendItem> legend = {};
  std::variant<Chart, DotPlot> drawing = {};

  int width() const;  // both with margins
  int height() const;
  Margins margins() const;
  std::string svg() const;  // plot area only
};

// A panel with a chart and a legend of its lines.
Panel panel_of(Chart chart, std::string heading = {});

struct Figure {
  std::string name;      // file name without extension
  std::string heading;   // above the figure
  std::string css = {};  // how a page lays out the panels: "loss" (2 : 1), "two", "three", "" (one below the other)
  std::vector<LegendItem> legend = {};  // for all panels
  std::vector<Panel> panels = {};
  std::string caption = {};
};

// The heading and a <figure> element.
std::string figure_html(const Figure& figure);

// An SVG document with its own style sheet for light and dark mode. The panels are in one row, with their headings and
// legends (if css is empty: one below the other).
std::string figure_svg(const Figure& figure);

}  // namespace isonorm::reports
