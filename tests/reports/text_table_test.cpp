// Tables of limited width: no line is longer, no number is broken, nothing is lost.
#include "reports/text_table.h"

#include <iterator>
#include <set>
#include <sstream>

#include "equivalence/text/proof_text.h"
#include "reports/text_layout.h"
#include "tests/equivalence/synthetic.h"
#include "tests/support/catch.h"
#include "tests/support/markup.h"

using namespace isonorm::equivalence;
using namespace isonorm::reports;
using isonorm::test::contains;
using isonorm::test::well_formed;

namespace {

std::vector<std::string> split(const std::string& s) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::multiset<std::string> tokens(const std::string& s) {
  std::istringstream in(s);
  return {std::istream_iterator<std::string>(in), {}};
}

TextTable table_with_reasons() {
  TextTable table{.heading = "h", .columns = {"run", "loss", "reason", "observed"}};
  table.rows = {
      {{"a form"}, {"1.0e-15 / 2.0e-15"}, {"at most four percent of the bound, at the gradient of step 3"}, {"same"}},
      {},
      {{"a control"}, {"2.0e-01 / 3.0e-15"}, {""}, {"different", Tone::bad}}};
  return table;
}

}  // namespace

TEST_CASE("text table: a table that fits is unchanged, and width 0 is no limit") {
  const TextTable table = table_with_reasons();
  const std::string wide = to_text(table, false);
  CHECK(to_text(table, false, text_length(split(wide)[1])) == wide);
  CHECK(split(wide)[2] ==
        "a form     1.0e-15 / 2.0e-15  at most four percent of the bound, at the gradient of step 3       same");
  CHECK(split(wide)[3].empty());
}

TEST_CASE("text table: characters are aligned, not bytes, and rows have a cell for each column") {
  TextTable table{.heading = "h", .columns = {"a", "b"}};
  table.rows = {{{"δδ"}, number_cell(1e-15)}, {{"x"}, {"<&>", Tone::bad}}};
  CHECK(to_text(table, false) == "a         b\n-----------\nδδ  1.0e-15\nx       <&>\n");
  CHECK(contains(to_text(table, true), "    \x1b[31;1m<&>\x1b[0m\n"));
  CHECK(contains(to_html(table), "<td data-column=\"b\" class=\"bad\">&lt;&amp;&gt;</td>"));
  table.rows.push_back({{"short"}});
  CHECK_THROWS_AS(to_text(table, false), isonorm::Error);
}

TEST_CASE("text table: a reason is printed below its row, indented under the name") {
  CHECK(to_text(table_with_reasons(), false, 40) ==
        "run                     loss   observed\n"
        "---------------------------------------\n"
        "a form     1.0e-15 / 2.0e-15       same\n"
        "\n"
        "a control  2.0e-01 / 3.0e-15  different\n"
        "\n"
        "a form: at most four percent of the\n"
        "  bound, at the gradient of step 3\n");
  CHECK(contains(to_text(table_with_reasons(), true, 30), "\x1b[31;1mdifferent\x1b[0m"));
}

TEST_CASE("text table: a proof's table fits 80 and 100 columns; verdicts are in the first part") {
  const TextTable table = document_of(synthetic_proof()).tables[0];
  const std::string wide = to_text(table, false);
  CHECK(split(wide)[0].ends_with("loss           gradient            weights      test   predicts"));
  CHECK(split(wide)[1].ends_with(
      "/ control          / control          / control  accuracy  otherwise    expected    observed"));
  for (size_t width : {60u, 80u, 100u}) {
    const std::string s = to_text(table, false, width);
    for (const std::string& line : split(s)) CHECK(text_length(line) <= width);
    const auto all = tokens(s);
    for (const std::string& token : tokens(wide))
      if (token.find("---") == std::string::npos) {
        INFO(token);
        CHECK(all.contains(token));
      }
    const std::string first = s.substr(0, s.find("\n\n                 "));
    CHECK(contains(first, "observed"));
    CHECK(contains(first, "different"));
  }
}

TEST_CASE("text table: a long row name continues on an indented line that stays wide enough to read") {
  const TextTable table{
      .heading = "h",
      .columns = {"architecture", "loss", "verdict"},
      .rows = {{{"gpt2: width 24, 3 heads, learned, class token"}, {"1.0e-15 / 2.0e-15"}, {"same, 3 %"}}}};
  CHECK(to_text(table, false, 44) ==
        "architecture                 loss    verdict\n"
        "--------------------------------------------\n"
        "gpt2: width 24, 3         1.0e-15  same, 3 %\n"
        "  heads, learned,       / 2.0e-15\n"
        "  class token\n");
}

TEST_CASE("text table: a word that is too long is not broken; width 1 ends") {
  const TextTable table{.heading = "h", .columns = {"name", "value"}, .rows = {{{"projected_once"}, {"1.0e-15"}}}};
  CHECK(contains(to_text(table, false, 1), "projected_once"));
  CHECK(contains(to_text(table, false, 1), "1.0e-15"));
}

TEST_CASE("text table: prose is broken at spaces") {
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 7, 2) == "one\n  two\n  three");
  CHECK(wrapped("one two three", 0) == "one two three");
  CHECK(wrapped("longer", 3) == "longer");
  CHECK(wrapped("all of 31 % is", 9) == "all of\n31 % is");
  CHECK(wrapped("a 1.0e-15 / 2.0e-15", 11) == "a 1.0e-15\n/ 2.0e-15");
}

TEST_CASE("text table: a page names the column of every cell, for a narrow screen without the head") {
  const std::string html = to_html(table_with_reasons());
  CHECK(well_formed(html));
  CHECK(contains(html, "<td data-column=\"reason\" class=\"words\">at most"));
  CHECK(contains(html, "<td data-column=\"observed\" class=\"bad\">different</td>"));
  CHECK(contains(html, "<tr class=\"group\"><td data-column=\"run\">a form"));
}
