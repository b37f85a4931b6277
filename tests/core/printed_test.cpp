// Numbers as text and back, compared with printf and strtod. The tests run in the C locale.
#include "core/printed.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {

template <class... A> std::string by_printf(const char* format, A... a) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, a...);
  return buffer;
}

// Doubles of every size: random bit patterns, decimal fractions with three digits, and special values.
std::vector<double> doubles() {
  std::vector<double> all = {0.0,
                             -0.0,
                             0.125,
                             0.375,
                             2.5,
                             3.5,
                             1e22,
                             1e23,
                             9.995,
                             0.5,
                             1e300,
                             5e-324,
                             123456,
                             1234567,
                             1e-4,
                             1e-5,
                             std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const uint64_t bits = random();
    double any;
    std::memcpy(&any, &bits, sizeof any);
    all.push_back(any);
    all.push_back(static_cast<double>(static_cast<int64_t>(bits % 2'000'001) - 1'000'000) / 1000);
  }
  return all;
}

}  // namespace

TEST_CASE("printed: floating numbers are printf's") {
  const char* const formats[] = {"%f",      "%e",     "%g",      "%.0f",   "%.1f",    "%.3f",      "%.1e",
                                 "%.2e",    "%.3g",   "%.6g",    "%.9g",   "%.17g",   "%+.2f",     "%8.3f",
                                 "%-12.4f", "%12.6f", "%010.0f", "%+9.1e", "%-9.2g|", "%% %.0f %%"};
  for (const double x : doubles())
    for (const char* format : formats) {
      const std::string ours = printed(format, x), theirs = by_printf(format, x);
      if (ours != theirs) FAIL(format << " of " << theirs << " is " << ours);
    }
}

TEST_CASE("printed: whole numbers, characters and texts are printf's") {
  for (const int n : {0, 1, -1, 42, -12345, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
    for (const char* format : {"%d", "%3d", "%-6d|", "%02d", "%05d", "%+d", "%+05d"})
      CHECK(printed(format, n) == by_printf(format, n));
  CHECK(printed("%x %08x %016x", 255u, 0xdeadu, uint64_t{1} << 63) == "ff 0000dead 8000000000000000");
  CHECK(printed("%d %u", std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()) ==
        "-9223372036854775808 18446744073709551615");
  CHECK(printed("%c%c", 'M', 'l') == "Ml");
  CHECK(printed("%-8s|%8s|%.2s|%s", "left", std::string("right"), "short", std::string_view("")) ==
        "left    |   right|sh|");
  CHECK(printed("%-*s|%*d|%.*f", 5, "a", size_t{3}, 7, 2, 0.125) == by_printf("%-*s|%*d|%.*f", 5, "a", 3, 7, 2, 0.125));
  CHECK(printed("%s", std::string(1000, 'x')).size() == 1000);
}

TEST_CASE("printed: an argument of another kind, too few and too many are errors") {
  CHECK_THROWS_AS(printed("%d", 1.0), Error);
  CHECK_THROWS_AS(printed("%f", 1), Error);
  CHECK_THROWS_AS(printed("%s", 1), Error);
  CHECK_THROWS_AS(printed("%d", "one"), Error);
  CHECK_THROWS_AS(printed("%d %d", 1), Error);
  CHECK_THROWS_AS(printed("%d", 1, 2), Error);
  CHECK_THROWS_AS(printed("%lld", 1), Error);
  CHECK_THROWS_AS(printed("%", 1), Error);
}

TEST_CASE("number_text and shortest: read back as the same number") {
  for (const double x : doubles()) {
    if (std::isnan(x)) continue;
    double read = 0;
    for (const std::string& s : {number_text(x), shortest(x)}) {
      if (!read_number(s, read) || read != x || std::strtod(s.c_str(), nullptr) != x) FAIL(s);
    }
    std::string digits;  // %g with the fewest digits, at least 6
    for (int n = 6; n <= 17; ++n)
      if (digits = by_printf("%.*g", n, x); std::strtod(digits.c_str(), nullptr) == x) break;
    if (shortest(x) != digits) FAIL(digits);
  }
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(255, 16) == "ff");
  CHECK(number_text(1.5, std::chars_format::hex) == "1.8p+0");
  CHECK(text(0.1f, ' ', 1.0 / 3, ' ', 1234567890, ' ', 12345678901.0) ==
        "0.100000001 0.333333333 1234567890 1.23456789e+10");
}

TEST_CASE("read_number: the whole word, in range, or nothing") {
  int n = 7;
  double x = 7;
  for (const char* word : {"", " 1", "1 ", "+1", "1,5", "0x10", "1e", "--1", "one"}) {
    INFO(word);
    CHECK_FALSE(read_number(word, n));
    CHECK_FALSE(read_number(word, x));
  }
  CHECK_FALSE(read_number("1.5", n));
  CHECK_FALSE(read_number("2147483648", n));
  CHECK_FALSE(read_number("1e400", x));
  uint64_t natural = 7;
  CHECK_FALSE(read_number("-1", natural));
  CHECK_FALSE(read_number("18446744073709551616", natural));
  CHECK((n == 7 && x == 7 && natural == 7));
  CHECK((read_number("-12", n) && n == -12));
  CHECK((read_number("007", n) && n == 7));
  CHECK((read_number("1.5e-3", x) && x == 0.0015));
  CHECK((read_number("1.8p+0", x, std::chars_format::hex) && x == 1.5));
}

TEST_CASE("read_numbers: the requested count, separated by spaces") {
  double loss = 0;
  int step = 0, since = 0;
  CHECK((read_numbers("0.5 3 -2", loss, step, since) && loss == 0.5 && step == 3 && since == -2));
  for (const char* words : {"0.5 3", "0.5 3 2 1", "0.5  3 2", "0.5 3 2 ", " 0.5 3 2", "a 3 2", "0,5 3 2", ""}) {
    INFO(words);
    CHECK_FALSE(read_numbers(words, loss, step, since));
  }
}

TEST_CASE("printed: known texts, in any locale") {
  CHECK(printed("%.3f %.2e %g %d %8.1f|", 1234567.5, 0.001, 0.5, 1234567, -2.25) ==
        "1234567.500 1.00e-03 0.5 1234567     -2.2|");
  CHECK(text(0.5, ' ', 1234567, ' ', -1e-7) == "0.5 1234567 -1e-07");
  CHECK(shortest(0.001) + ' ' + scientific(0.00012) + ' ' + number_text(1234567.25) == "0.001 1.2e-04 1234567.25");
}
