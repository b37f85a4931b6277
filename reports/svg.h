// A line chart over training steps as inline SVG. Colours, dashes and widths come from the page's style sheet, so that
// one drawing serves light, dark and paper. Its width is that of what it stands in: curves stretch, text and strokes do
// not.
#pragma once

#include <string>
#include <vector>

namespace isonorm::reports {

struct ChartLine {
  std::string name;            // shown when the pointer rests on the line
  std::string css;             // class
  std::vector<double> values;  // of step 1, 2, ...; one that is not finite interrupts the line
  std::string label = {};      // written at the line's end; empty: none
};

// The area between two curves.
struct ChartBand {
  std::string name;
  std::string css;
  std::vector<double> low, high;
};

// What a drawing needs beside its plot area, in px: there stands what is written around it.
struct Margins {
  double left = 52, right = 12, top = 10, bottom = 38;
};

struct Chart {
  std::string title = {};  // for readers that do not see the drawing
  bool log_scale = false;
  double low = 0, high = 1;  // of the vertical axis; in a log scale decades (1e-17, 1), and what lies below is drawn on
                             // the lower edge
  int steps = 1;             // of the horizontal axis
  std::string axis = "step";            // its name
  int mark = 0;                         // an upright line at this step; 0: none
  std::vector<std::string> ticks = {};  // what stands at step 1, 2, ... of it; empty: round numbers
  int width = 640, height = 300;        // with margins; the width is that in a file of its own
  std::vector<ChartBand> bands = {};
  std::vector<ChartLine> lines = {};

  Margins margins() const;  // labels at the lines' ends have room on the right, however narrow the plot area is
};

// The <svg> element of the plot area, without width and height; what is written around it lies in the margins. Throws
// where low is not below high, or not positive in a log scale.
std::string svg_chart(const Chart& chart);

// Fits the vertical axis (not a log scale) and the number of steps to the chart's lines.
void fit_axis(Chart& chart);

// About `count` round numbers (1, 2 or 5 times a power of ten) from low to high.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace isonorm::reports
