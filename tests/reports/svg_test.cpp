// Charts: coordinates of known points, gaps at values that are not finite, escaping, round ticks.
#include "reports/svg.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "reports/figure.h"
#include "tests/support/catch.h"
#include "tests/support/markup.h"

using namespace isonorm::reports;
using isonorm::test::contains;
using isonorm::test::well_formed;

TEST_CASE("svg: points lie where the axes say") {
  // Paths have a plot area of 1000 by 210 - 10 - 38 = 162.
  Chart chart{.low = 0, .high = 2, .steps = 3, .width = 252, .height = 210};
  chart.lines.push_back({"a", "line", {0, 1, 2}});
  CHECK(contains(svg_chart(chart), "<path class=\"line\" d=\"M0.0 162.0L500.0 81.0L1000.0 0.0\">"));
  chart.log_scale = true;
  chart.low = 1e-4, chart.high = 1;
  chart.lines[0].values = {0, 1e-2, 1};  // zero is on the lower edge
  CHECK(contains(svg_chart(chart), "d=\"M0.0 162.0L500.0 81.0L1000.0 0.0\""));
  CHECK(contains(svg_chart(chart), ">10⁻²</text>"));
  chart.low = 0;
  CHECK_THROWS_AS(svg_chart(chart), isonorm::Error);
}

TEST_CASE("svg: curves of any finite numbers are drawn") {
  const double largest = std::numeric_limits<double>::max();
  const double next = std::nextafter(1.0, 2.0);
  for (const std::vector<double>& values : std::vector<std::vector<double>>{{1, 1e300},
                                                                            {1e300, std::nextafter(1e300, 2e300)},
                                                                            {-largest, largest},
                                                                            {largest, largest},
                                                                            {1, next},
                                                                            {-3, -2},
                                                                            {-5, -5},
                                                                            {0, 5e-324},
                                                                            {0, 0}}) {
    Chart chart{.height = 148, .lines = {{"a", "line", values}}};  // a plot area of 100 px
    fit_axis(chart);
    INFO(values[0] << " to " << values[1]);
    CHECK(round_ticks(chart.low, chart.high, 6).size() < 20);
    const std::string svg = svg_chart(chart);
    CHECK(well_formed(svg));
    for (const char* word : {"nan", "inf"}) CHECK_FALSE(contains(svg, word));
    CHECK(contains(svg, "<path class=\"line\" d=\"M0.0 "));
  }
  CHECK(round_ticks(1, next, 6).empty());
  CHECK(round_ticks(-1e300, 1e300, 4) == std::vector<double>{-1e300, -5e299, 0, 5e299, 1e300});
}

TEST_CASE("svg: curves stretch with their place, text does not") {
  Chart chart{.steps = 40, .lines = {{"a", "rms", {0, 1}, "end"}}};
  const DotPlot dots{.zones = {{"good", "low", 1e-17, 1}}, .rows = {{"row", {{"rms", "one", 1e-3}}}}};
  for (const std::string& svg : {svg_chart(chart), svg_dots(dots)}) {
    CHECK_FALSE(contains(svg.substr(0, svg.find('>')), "viewBox"));
    const size_t begin = svg.find("<svg", 1), end = svg.find("</svg>");
    const std::string stretched = svg.substr(begin, end - begin), rest = svg.substr(0, begin) + svg.substr(end);
    CHECK(contains(stretched, "viewBox"));
    CHECK(contains(stretched, "preserveAspectRatio=\"none\""));
    CHECK(contains(stretched, "<path"));
    for (const char* part : {"<text", "<circle"}) CHECK_FALSE(contains(stretched, part));
    CHECK(contains(rest, "<text"));
    CHECK_FALSE(contains(rest, "<path"));
  }
}

TEST_CASE("svg: labels are in the order of the lines' ends, do not overlap and stay within the margin") {
  Chart chart{.low = 0, .high = 1, .steps = 5, .height = 148};  // a plot area of 100 px
  const auto line = [](const char* name, double end) { return ChartLine{name, "rms", {0, 0, 0, 0, end}, name}; };
  chart.lines = {line("low", 0.01), line("second", 0.50), line("first", 0.51), line("least", 0)};
  const std::string svg = svg_chart(chart);
  std::vector<double> heights;
  for (const char* name : {"first", "second", "low", "least"}) {
    const size_t end = svg.find(std::string(">") + name + "</text>");
    REQUIRE(end != std::string::npos);
    heights.push_back(std::stod(svg.substr(svg.rfind(" y=\"", end) + 4)));
  }
  for (size_t i = 1; i < heights.size(); ++i) CHECK(heights[i] - heights[i - 1] >= 13.9);
  CHECK(heights.front() < 60);
  CHECK(heights.back() <= 104);                       // the baseline of a text on the axis
  CHECK(chart.margins().right > 6 * 6);               // "second" ends at the right edge
  chart.lines = {{"early", "rms", {0, 1}, "early"}};  // ends at a quarter of the width
  CHECK(chart.margins().right == 12);
}

TEST_CASE("svg: long row names are above their rows, short ones to the left") {
  DotPlot plot{.rows = {{"gpt1", {{"rms", "one", 1e-3}}}}};
  CHECK(contains(svg_dots(plot), "text-anchor=\"end\">gpt1<"));
  const int height = plot.height();
  plot.rows[0].label = "the stream's mean is taken away twice";
  CHECK(contains(svg_dots(plot), "x=\"0\" y=\"15.0\">the stream"));
  CHECK(plot.margins().left < 20);
  CHECK(plot.height() == height + 15);
}

TEST_CASE("svg: NaN and infinity interrupt a line and never reach the file") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Chart chart{.low = 0, .high = 2, .steps = 5, .width = 464, .height = 210};
  chart.lines.push_back({"a", "line", {0, nan, 1, 1, inf}, "end"});
  chart.bands.push_back({"b", "band", {0, nan, 0, 0, 0}, {1, 1, inf, 1, 1}});
  const std::string svg = svg_chart(chart);
  CHECK(contains(svg, "d=\"M0.0 162.0M500.0 81.0L750.0 81.0\""));
  for (const char* part : {"nan", "inf", ">end<"}) CHECK_FALSE(contains(svg, part));
}

TEST_CASE("svg: round ticks") {
  CHECK(round_ticks(0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 3 * 0.2, 0.8, 1});
  CHECK(round_ticks(1, 200, 4) == std::vector<double>{50, 100, 150, 200});
  CHECK(round_ticks(-3, 3, 3) == std::vector<double>{-2, 0, 2});
  CHECK(round_ticks(1, 1, 4).empty());
  CHECK_FALSE(std::signbit(round_ticks(0, 1e-3, 4)[0]));  // "-0" would be printed
}

TEST_CASE("svg: names are escaped, names of an axis too") {
  Chart chart{.title = "a \"b\" <c>", .low = 0, .high = 1, .steps = 3, .axis = "a < b", .ticks = {"1/2", "1", "2"}};
  chart.lines.push_back({"x & y", "line", {0, 1}});
  const std::string svg = svg_chart(chart);
  for (const char* part : {"aria-label=\"a &quot;b&quot; &lt;c&gt;\"", "<title>x &amp; y</title>", ">1/2</text>",
                           ">2</text>", ">a &lt; b</text>"})
    CHECK(contains(svg, part));
  CHECK_FALSE(contains(svg, ">step<"));
}

TEST_CASE("svg: dots are at the axis's positions, within it, and only finite numbers have one") {
  DotPlot plot{.axis = "size", .low = 1e-2, .high = 1};
  plot.zones = {{"good", "low", 1e-2, 1e-1}};
  plot.rows = {{"a & b",
                {{"rms", "one", 1e-1, true},
                 {"rms", "two", 0},
                 {"rms", "three", 50},
                 {"rms", "four", std::numeric_limits<double>::quiet_NaN()}}}};
  const std::string svg = svg_dots(plot);
  CHECK(well_formed(svg));
  for (const char* part : {"class=\"dot solid rms\" cx=\"50.00%\"", "class=\"dot rms\" cx=\"0.00%\"",
                           "class=\"dot rms\" cx=\"100.00%\"", "M0.0 0H500.0" /* the zone */, ">a &amp; b</text>"})
    CHECK(contains(svg, part));
  for (const char* part : {"four", "nan"}) CHECK_FALSE(contains(svg, part));
  plot.low = 2;
  CHECK_THROWS_AS(svg_dots(plot), isonorm::Error);
}

TEST_CASE("svg: a figure as a document has its style and every panel, side by side or one below the other") {
  Figure figure{.name = "f", .heading = "A <heading>", .css = "two", .legend = {{"rms", "a line"}}};
  figure.panels = {{.heading = "left", .drawing = Chart{.width = 300, .height = 200}},
                   {.heading = "right", .drawing = DotPlot{.rows = {{"row", {}}}}}};
  std::string svg = figure_svg(figure);
  CHECK(well_formed(svg));
  for (const char* part : {"xmlns=\"http://www.w3.org/2000/svg\"", "prefers-color-scheme: dark", "A &lt;heading&gt;",
                           ">left</text>", ">right</text>", ">a line</text>"})
    CHECK(contains(svg, part));
  CHECK(contains(svg, "<svg x=\"70.0\""));   // 18 + 52
  CHECK(contains(svg, "<svg x=\"371.8\""));  // 18 + 300 + 22, and "row"
  figure.css = "";
  svg = figure_svg(figure);
  CHECK_FALSE(contains(svg, "<svg x=\"371.8\""));
  CHECK(well_formed(figure_html(figure)));
}
