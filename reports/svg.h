// Line charts and dot plots as inline SVG.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/printed.h"
#include "reports/text_layout.h"

namespace isonorm::reports {

// A line chart over training steps as inline SVG. Colours, dashes and widths come from the page's style sheet, so that
// one drawing serves light mode, dark mode and print. The drawing is as wide as its container: curves stretch, text and
// strokes do not.

struct ChartLine {
  std::string name;            // shown when the pointer rests on the line
  std::string css;             // class
  std::vector<double> values;  // at steps 1, 2, ...; a number that is not finite interrupts the line
  std::string label = {};      // written at the line's end; empty: none
};

// The area between two curves.
struct ChartBand {
  std::string name;
  std::string css;
  std::vector<double> low, high;
};

// Space around the plot area, in px, for axis labels and the like.
struct Margins {
  double left = 52, right = 12, top = 10, bottom = 38;
};

struct Chart {
  std::string title = {};  // for readers that do not see the drawing
  bool log_scale = false;
  double low = 0, high = 1;             // vertical axis; on a log scale both are powers of ten (1e-17, 1),
                                        // and smaller values are drawn on the lower edge
  int steps = 1;                        // of the horizontal axis
  std::string axis = "step";            // its name
  int mark = 0;                         // vertical line at this step; 0: none
  std::vector<std::string> ticks = {};  // labels of steps 1, 2, ...; empty: round numbers
  int width = 640, height = 300;        // with margins; only an SVG file of its own uses width
  std::vector<ChartBand> bands = {};
  std::vector<ChartLine> lines = {};

  Margins margins() const;  // leaves room on the right for line labels, for any width of the plot area
};

// The <svg> element of the plot area, without width and height; labels are in the margins around it. Throws if low is
// not below high, or if a log scale has low <= 0.
std::string svg_chart(const Chart& chart);

// Fits the vertical axis (not a log scale) and the number of steps to the chart's lines.
void fit_axis(Chart& chart);

// About `count` round numbers (1, 2 or 5 times a power of ten) from low to high.
std::vector<double> round_ticks(double low, double high, int count);

// A dot plot on a logarithmic axis as inline SVG: one row for each measured quantity, and zones in which its dots
// should be. Colours come from the style sheet, as in svg.h.

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

// Internal: what all drawings share: text made from numbers, and paths that stretch with the plot area.

template <class... A> void append_printed(std::string& out, const char* format, A... a) {
  out += printed(format, a...);
}

inline constexpr double kAcross = 1000;  // the plot area's width in units of its paths, for any width in px

// Begin and end of the part of a drawing that stretches with its width: paths, but no text or circles. `height` in px.
inline std::string begin_paths(double height) {
  return printed("<svg width=\"100%%\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\">\n",
                 height, kAcross, height);
}
inline constexpr const char* kEndPaths = "</svg>\n";

// Approximate width of a text at 12 px.
inline double text_width(std::string_view s) { return 6.6 * static_cast<double>(text_length(s)); }

// "10⁻¹⁵".
inline std::string power_of_ten(int exponent) {
  static const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  std::string result = exponent < 0 ? "10⁻" : "10";
  for (char c : text(std::abs(exponent))) result += kDigits[c - '0'];
  return result;
}

}  // namespace isonorm::reports
