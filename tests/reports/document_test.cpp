// A document in its three renderings: each has everything that the document holds, except for parts hidden in a
// terminal.
#include "reports/document.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/markup.h"

using namespace isonorm::reports;
using isonorm::test::contains;
using isonorm::test::unstyled;
using isonorm::test::well_formed;
using nlohmann::json;

namespace {

Document everything() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const TextTable runs{.heading = "Runs <1>",
                       .columns = {"run", "loss\n/ control", "steps", "verdict"},
                       .caption = "A caption.",
                       .rows = {{{"first"}, beside_cell(1e-15, 2e-15), count_cell(200), {"same", Tone::good}},
                                {},
                                {{"second"}, number_cell(nan), count_cell(20), {"different", Tone::bad}}}};
  const TextTable detail{
      .heading = "Reasons", .columns = {"", "name"}, .rows = {{{"first"}, {"a detail"}}}, .detail = true};
  const Chart chart{.low = 0,
                    .high = 3,
                    .steps = 3,
                    .bands = {{"controls", "band", {0, 0}, {1, 2}}},
                    .lines = {{"a line", "rms", {1, nan, 2.5}}}};
  return {.title = "A title",
          .about = "What was & done.",
          .tone = Tone::good,
          .verdict = "Equivalent",
          .sentence = "all within 1.0e-15.",
          .values = {{"a count", int64_t{7}},
                     {"a part", 0.25},
                     {"a word", std::string("yonder")},
                     {"a flag", true},
                     {"nothing", {}}},
          .tables = {runs, detail},
          .figures = {{.name = "f", .heading = "A figure", .panels = {{.heading = "left", .drawing = chart}}}},
          .remarks = {"A remark."},
          .method = {"The method, up to 3 %."},
          .environment = {.facts = {{"cpu", std::string("a\xff chip")}},
                          .options = {{"lr", 1e-3}, {"data", std::string("text")}},
                          .command = "isonorm prove --lr '1'",
                          .seconds = 12.4},
          .result = {{"schema", std::string("isonorm.prove/1")},
                     {"horizon", std::vector<Named>{{"steps", int64_t{3}}}},
                     {"losses", std::vector<Value>{0.5, 0.25}}}};
}

}  // namespace

TEST_CASE("document: as text, tables, values and remarks precede the closing sentence") {
  CHECK(to_text(everything(), false) ==
        "Runs <1>\n\n"
        "                     loss\n"
        "run             / control  steps    verdict\n"
        "-------------------------------------------\n"
        "first   1.0e-15 / 2.0e-15    200       same\n"
        "\n"
        "second                NaN     20  different\n"
        "\nA caption.\n\n"
        "a count: 7\na part: 0.25\na word: yonder\na flag: yes\nnothing: -\n\n"
        "A remark.\n\n"
        "Equivalent: all within 1.0e-15.\n");
}

TEST_CASE("document: a closing sentence, whole or in lines, its verdict coloured") {
  Document d = everything();
  CHECK(closing(d) == "Equivalent: all within 1.0e-15.");
  CHECK(closing(d, true) == "\x1b[32mEquivalent\x1b[0m: all within 1.0e-15.");
  CHECK(closing(d, false, 20) == "Equivalent: all\nwithin 1.0e-15.");
  d.tone = Tone::bad;
  CHECK(closing(d, true).starts_with("\x1b[31;1mEquivalent"));
  d.tone = Tone::plain;
  CHECK(closing(d, true) == closing(d));
  d.verdict.clear();
  CHECK(closing(d) == "all within 1.0e-15.");
}

TEST_CASE("document: text from outside does not speak to the terminal") {
  Document d{.title = "",
             .sentence = "a \x1b]0;owned\x07 name",
             .values = {{"data", std::string("\x1b[1m")}},
             .remarks = {"\x9b 1"}};
  for (const char control : {'\x1b', '\x07', '\x9b'}) CHECK(to_text(d, false).find(control) == std::string::npos);
}

TEST_CASE("document: a page has all of it, loads nothing and runs nothing") {
  Document d = everything();
  const std::string html = to_html(d);
  CHECK(well_formed(html));
  CHECK(unstyled(html) == std::set<std::string>());
  for (const char* part : {"<h1>A title</h1>",
                           "What was &amp; done.",
                           "<strong>Equivalent</strong><span>All within 1.0e\u201115.",
                           "Runs &lt;1&gt;",
                           "class=\"bad\">different",
                           "<summary>Reasons</summary>",
                           "a detail",
                           "A caption.",
                           "<th>a count</th><td>7</td>",
                           "<td>0.25</td>",
                           "<td>yonder</td>",
                           "<td>yes</td>",
                           "<td>-</td>",
                           "<th>horizon steps</th><td>3</td>",
                           "role=\"img\"",
                           "A remark.",
                           "up to 3\u00a0%",
                           "isonorm prove --lr &#39;1&#39;",
                           "<th>seconds</th><td>12</td>",
                           "prefers-color-scheme: dark",
                           "@media print"})
    CHECK_THAT(html, Catch::Matchers::Contains(part));
  for (const char* part : {"<script", "http:", "https:", "src=", "@import", "url(", "<link", "nan"})
    CHECK_FALSE(contains(html, part));
  d.tone = Tone::plain;
  CHECK(contains(to_html(d), "class=\"verdict open\""));
  CHECK(well_formed(to_html({.title = "empty"})));
}

TEST_CASE("document: its JSON is the result, the text of the screen and the environment") {
  const Document d = everything();
  CHECK(json::parse(to_json(d)) == json({{"schema", "isonorm.prove/1"},
                                         {"horizon", {{"steps", 3}}},
                                         {"losses", {0.5, 0.25}},
                                         {"text", to_text(d, false)},
                                         {"command", "isonorm prove --lr '1'"},
                                         {"seconds", 12.4},
                                         {"options", {{"lr", 1e-3}, {"data", "text"}}},
                                         {"environment", {{"cpu", "a\ufffd chip"}}},
                                         {"non_finite", json::array()}}));
}
