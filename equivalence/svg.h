// A line chart over training steps as inline SVG. Colours, dashes and widths come from the page's style sheet, so that
// one drawing serves light, dark and paper.
#pragma once

#include <string>
#include <vector>

namespace isonorm::equivalence {

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

struct Chart {
  std::string title = {};  // for readers that do not see the drawing
  bool log_scale = false;
  double low = 0, high = 1;  // of the vertical axis; in a log scale decades (1e-17, 1), and what lies below is drawn on
                             // the lower edge
  int steps = 1;             // of the horizontal axis
  std::string axis = "step";            // its name
  int mark = 0;                         // an upright line at this step; 0: none
  std::vector<std::string> ticks = {};  // what stands at step 1, 2, ... of it; empty: round numbers
  int width = 640, height = 300;
  std::vector<ChartBand> bands = {};
  std::vector<ChartLine> lines = {};
};

// The <svg> element. Throws where low is not below high, or not positive in a log scale.
std::string svg_chart(const Chart& chart);

// The text with &, <, > and quotes replaced, fit for HTML and SVG.
std::string escaped(std::string_view text);

// About `count` round numbers (1, 2 or 5 times a power of ten) from low to high.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace isonorm::equivalence
