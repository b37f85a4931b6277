// A plot of dots on a logarithmic axis as inline SVG: a row for each thing measured, and zones in which its dots have
// to lie. Colours come from the style sheet, as those of svg.h do.
#pragma once

#include <string>
#include <vector>

#include "reports/svg.h"

namespace isonorm::reports {

struct Dot {
  std::string css;     // class
  std::string name;    // shown when the pointer rests on the dot
  double value;        // what lies outside of the axis (so also 0) is drawn on its edge; not drawn where not finite
  bool solid = false;  // filled
};

struct DotRow {
  std::string label;
  std::vector<Dot> dots;
};

// A part of the axis, coloured.
struct DotZone {
  std::string css, label;
  double low, high;
};

struct DotPlot {
  std::string title = {};  // for readers that do not see the drawing
  std::string axis = {};   // what the axis measures
  double low = 1e-17, high = 10;
  int width = 660;  // with margins, in a file of its own
  std::vector<DotZone> zones = {};
  std::vector<DotRow> rows = {};

  Margins margins() const;  // on the left the rows' labels; long ones stand above their rows instead
  int height() const;       // with margins
};

// The <svg> element of the plot area, as svg_chart. Throws where low is not positive and below high.
std::string svg_dots(const DotPlot& plot);

}  // namespace isonorm::reports
