// Tables of numbers: files of spreadsheets and NumPy, and files that are not tables.
#include "io/csv.h"

#include "tests/support/catch.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::thrown;
using Values = std::vector<double>;

namespace {

Csv read(const std::string& text, CsvOptions options = {}) { return load_csv(memory_bytes(text, "t.csv"), options); }
std::string refused(const std::string& text) {
  return thrown([&] { read(text); });
}

}  // namespace

TEST_CASE("csv: a header, rows, and columns by name") {
  const Csv table = read("a,b c,y\n1,2.5,-3\n4e-1,+5,6\n");
  CHECK(table.columns == std::vector<std::string>{"a", "b c", "y"});
  CHECK(table.values.shape() == Dims{2, 3});
  CHECK(table.values.to_vector<double>() == Values{1, 2.5, -3, 0.4, 5, 6});
  CHECK(table["b c"].to_vector<double>() == Values{2.5, 5});
  CHECK(table["y"].shape() == Dims{2});
  CHECK_THAT(thrown([&] { table["z"]; }), Contains("no column 'z'; the columns are 'a', 'b c', 'y'"));
}

TEST_CASE(
    "csv: without a header, with \\r\\n, a byte order mark, spaces, quotes, empty lines and no end of the last line") {
  CHECK(read("1,2\r\n3,4\r\n").values.to_vector<double>() == Values{1, 2, 3, 4});
  CHECK(read("\xef\xbb\xbf"
             "1,2\n3,4")
            .values.to_vector<double>() == Values{1, 2, 3, 4});
  CHECK(read(" 1 ;\t2\n\n3; 4 \n \n", {.separator = ';'}).values.to_vector<double>() == Values{1, 2, 3, 4});
  const Csv quoted = read("\"a, \"\"b\"\"\", \"c\" \n\"1\",2\n");
  CHECK(quoted.columns == std::vector<std::string>{"a, \"b\"", "c"});
  CHECK(quoted.values.to_vector<double>() == Values{1, 2});
  CHECK(read("7").values.shape() == Dims{1, 1});
}

TEST_CASE("csv: a tab that separates cells is no space around them") {
  const auto tabs = [](const std::string& text) {
    const Csv table = read(text, {.separator = '\t'});
    std::string cells = table.values.isnan().to_vector<int>() == std::vector<int>{0, 0, 1, 1, 1, 0} ? "empty ones" : "";
    return cells + (table.values.shape() == Dims{3, 2} ? " in 3 rows" : "");
  };
  CHECK(tabs("1\t2\n\t\n\t4\n") == "empty ones in 3 rows");
  CHECK(tabs(" 1\t 2 \n \t\n\t\"4\"\n") == "empty ones in 3 rows");
}

TEST_CASE("csv: an empty cell is NaN, nan and inf are numbers") {
  const Values v = read("1,,nan\n,inf,2\n").values.to_vector<double>();
  CHECK(v[0] == 1);
  for (int i : {1, 2, 3}) CHECK(std::isnan(v[static_cast<size_t>(i)]));
  CHECK(v[4] == HUGE_VAL);
}

TEST_CASE("csv: lines are found across the pieces in which the file is read") {
  std::string text = "a,b\n";
  Values expected;
  for (int i = 0; text.size() < 2'500'000; ++i) {
    text += std::to_string(i) + ',' + std::to_string(i % 7) + '\n';
    expected.push_back(i), expected.push_back(i % 7);
  }
  CHECK(read(text).values.to_vector<double>() == expected);
}

TEST_CASE("csv: a file that is no table of numbers is refused with line and column") {
  CHECK_THAT(refused("a,b\n1,2\n3,x\n"), Contains("t.csv: csv: line 3, column 2 ('b'): 'x' is no number"));
  CHECK_THAT(refused("1,2\n3,1.5.2\n"), Contains("line 2, column 2: '1.5.2' is no number"));
  CHECK_THAT(refused("a,b\n1,2\n3\n"), Contains("line 3 has 1 cells, the first line 2"));
  CHECK_THAT(refused("a,b\n1,2,3\n"), Contains("line 2 has 3 cells, the first line 2"));
  CHECK_THAT(refused("a\n\"1\n"), Contains("line 2, column 1: the quote does not end"));
  CHECK_THAT(refused("a,b\n"), Contains("there is no row of numbers"));
  CHECK_THAT(refused(""), Contains("there is no row of numbers"));
  CHECK_THAT(refused(std::string((1 << 24) + (1 << 21), '1')), Contains("line 1 is over 16777216 bytes"));
  CHECK_THAT(refused("a,b,\"a\"\n1,2,3\n"), Contains("t.csv: csv: columns 1 and 3 have the name 'a'"));
  CHECK(read("a,,\n1,2,3\n").columns.size() == 3);  // unnamed columns
  CHECK_THAT(refused("1\n1e999\n"), Contains("'1e999' is no number"));
  CHECK_THAT(refused("1\n+-2\n"), Contains("'+-2' is no number"));
  CHECK_THAT(refused("1,2\n\"3\"4,5\n"), Contains("line 2, column 1: text after the closing quote"));
  for (const char separator : {'.', '-', '"', '\n', '7'})
    CHECK_THAT(thrown([&] { read("1,2\n", {.separator = separator}); }), Contains("cannot separate numbers"));
}
