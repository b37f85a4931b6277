// Charts: coordinates of known points, gaps at values that are not finite, escaping, round ticks.
#include "equivalence/svg.h"

#include <limits>

#include "core/error.h"
#include "equivalence/figure.h"
#include "tests/equivalence/markup.h"
#include "tests/support/catch.h"

using namespace isonorm::equivalence;
using isonorm::test::contains;
using isonorm::test::well_formed;

TEST_CASE("svg: points lie where the axes say") {
  // Plot area: x from 52 to 252 - 12 = 240, y from 210 - 38 = 172 (low) to 10 (high).
  Chart chart{.low = 0, .high = 2, .steps = 3, .width = 252, .height = 210};
  chart.lines.push_back({"a", "line", {0, 1, 2}});
  CHECK(contains(svg_chart(chart), "<path class=\"line\" d=\"M52.0 172.0L146.0 91.0L240.0 10.0\">"));
  chart.log_scale = true;
  chart.low = 1e-4, chart.high = 1;
  chart.lines[0].values = {0, 1e-2, 1};  // zero lies on the lower edge
  CHECK(contains(svg_chart(chart), "d=\"M52.0 172.0L146.0 91.0L240.0 10.0\""));
  CHECK(contains(svg_chart(chart), ">10⁻²</text>"));
  chart.low = 0;
  CHECK_THROWS_AS(svg_chart(chart), isonorm::Error);
}

TEST_CASE("svg: NaN and infinity interrupt a line and never reach the file") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Chart chart{.low = 0, .high = 2, .steps = 5, .width = 464, .height = 210};
  chart.lines.push_back({"a", "line", {0, nan, 1, 1, inf}, "end"});
  chart.bands.push_back({"b", "band", {0, nan, 0, 0, 0}, {1, 1, inf, 1, 1}});
  const std::string svg = svg_chart(chart);
  CHECK(contains(svg, "d=\"M52.0 172.0M252.0 91.0L352.0 91.0\""));
  CHECK_FALSE(contains(svg, "nan"));
  CHECK_FALSE(contains(svg, "inf"));
  CHECK_FALSE(contains(svg, ">end<"));
}

TEST_CASE("svg: names are escaped") {
  Chart chart{.title = "a \"b\" <c>", .steps = 2};
  chart.lines.push_back({"x & y", "line", {0, 1}});
  const std::string svg = svg_chart(chart);
  CHECK(contains(svg, "aria-label=\"a &quot;b&quot; &lt;c&gt;\""));
  CHECK(contains(svg, "<title>x &amp; y</title>"));
}

TEST_CASE("svg: round ticks") {
  CHECK(round_ticks(0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 3 * 0.2, 0.8, 1});
  CHECK(round_ticks(1, 200, 4) == std::vector<double>{50, 100, 150, 200});
  CHECK(round_ticks(-3, 3, 3) == std::vector<double>{-2, 0, 2});
  CHECK(round_ticks(1, 1, 4).empty());
}

TEST_CASE("svg: an axis with names of its own") {
  Chart chart{.low = 0, .high = 1, .steps = 3, .axis = "a < b", .ticks = {"1/2", "1", "2"}};
  const std::string svg = svg_chart(chart);
  for (const char* part : {">1/2</text>", ">2</text>", ">a &lt; b</text>"}) CHECK(contains(svg, part));
  CHECK_FALSE(contains(svg, ">step<"));
}

TEST_CASE("svg: dots lie where the axis says, within it, and only where they are numbers") {
  // The axis runs from x = 100 to 214 - 14 = 200 over two decades.
  DotPlot plot{.axis = "size", .low = 1e-2, .high = 1, .width = 214, .left = 100};
  plot.zones = {{"good", "low", 1e-2, 1e-1}};
  plot.rows = {{"a & b",
                {{"rms", "one", 1e-1, true},
                 {"rms", "two", 0},
                 {"rms", "three", 50},
                 {"rms", "four", std::numeric_limits<double>::quiet_NaN()}}}};
  const std::string svg = svg_dots(plot);
  CHECK(well_formed(svg));
  CHECK(contains(svg, "class=\"dot solid rms\" cx=\"150.0\""));
  CHECK(contains(svg, "class=\"dot rms\" cx=\"100.0\""));
  CHECK(contains(svg, "class=\"dot rms\" cx=\"200.0\""));
  CHECK(contains(svg, "M100.0 22.0H150.0"));  // the zone
  CHECK(contains(svg, ">a &amp; b</text>"));
  CHECK_FALSE(contains(svg, "four"));
  CHECK_FALSE(contains(svg, "nan"));
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
  CHECK(contains(svg, "<svg x=\"18.0\""));
  CHECK(contains(svg, "<svg x=\"340.0\""));  // 18 + 300 + 22
  figure.css = "";
  svg = figure_svg(figure);
  CHECK_FALSE(contains(svg, "<svg x=\"340.0\""));
  CHECK(well_formed(figure_html(figure)));
}
