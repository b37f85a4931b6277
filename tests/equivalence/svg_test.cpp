// Charts: coordinates of known points, gaps at values that are not finite, escaping, round ticks.
#include "equivalence/svg.h"

#include <limits>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace isonorm::equivalence;

namespace {
bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }
}  // namespace

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
