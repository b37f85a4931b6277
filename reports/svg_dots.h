// A dot plot on a logarithmic axis as inline SVG: one row for each measured quantity, and zones in which its dots
// should be. Colours come from the style sheet, as in svg.h.
#pragma once

#include <string>
#include <vector>

#include "reports/svg.h"

namespace isonorm::reports {

struct Dot {
  std::string css;     // class
  std::string name;    // shown when the pointer rests on the dot
  double value;        // values outside the axis, 0 included, are drawn on its edge; not drawn if not finite
  bool solid = false;  // filled
};

struct DotRow {
  std::string label;
  std::vector<Dot> dots;
};

// A coloured section of the axis.
struct DotZone {
  std::string css, label;
  double low, high;
};

struct DotPlot {
  std::string title = {};  // for readers that do not see the drawing
  std::string axis = {};   // the quantity on the axis
  double low = 1e-17, high = 10;
  int width = 660;  // with margins, in a file of its own
  std::vector<DotZone> zones = {};
  std::vector<DotRow> rows = {};

  Margins margins() const;  // room for row labels on the left, unless a label is long: then all are above their rows
  int height() const;       // with margins
};

// The <svg> element of the plot area, as svg_chart(). Throws if not 0 < low < high.
std::string svg_dots(const DotPlot& plot);

}  // namespace isonorm::reports
