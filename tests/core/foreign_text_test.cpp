// Text in files can neither control a terminal nor fill it.
#include "core/system/foreign_text.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace isonorm;

TEST_CASE("foreign text: control characters, turned text and bytes that are no UTF-8 are escaped") {
  CHECK(printable("plain, \xc3\xa4 and \xe2\x82\xac") == "plain, \xc3\xa4 and \xe2\x82\xac");
  CHECK(printable("two\nlines") == "two lines");
  CHECK(printable("\x1b]0;owned\x07\t\x7f\r") == "\\x1b]0;owned\\x07\\x09\\x7f\\x0d");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\x9b2J");  // CSI in UTF-8
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");  // CSI as a byte
  CHECK(printable("\xe2\x80\xae"
                  "gnp.exe") == "\\u202egnp.exe");  // right to left from here on
  CHECK(printable("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f") == "\\u2066\\u2069\\u200f");
  CHECK(printable("w\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf\xc2\xad") == "w\\u200b\\u2028\\ufeff\\xad");
  CHECK(printable("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");  // four bytes
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");       // a surrogate
  CHECK(printable("\xc3") == "\\xc3");                         // cut off
}

TEST_CASE("foreign text: a list names its first entries and how many more there are") {
  ShortList list(", ", 3);
  CHECK((list.empty() && list.str().empty()));
  for (const char* name : {"a", "b", "c"}) list.add(name, 1);
  CHECK(text("all: ", list) == "all: a1, b1, c1");
  for (int i = 0; i < 19'998; ++i) list.add("d");
  CHECK((list.str() == "a1, b1, c1, and 19998 more" && list.size() == 20'001));
  ShortList lines("\n  ", 1);
  lines.add("one"), lines.add("two");
  CHECK(lines.str() == "one\n  and 1 more");
}

TEST_CASE("foreign text: quotes, and a text of several lines") {
  CHECK(text(Shown{"a\x1b"}, Shown{"b", '"'}) == "'a\\x1b'\"b\"");
  CHECK(text(Shown{std::string(100'000, 'w')}).size() < 120);
  CHECK(printable_lines("a\x1b\n\nb\n") == "a\\x1b\n\nb\n");
  CHECK(printable_lines("") == "");
  CHECK(printable_lines(std::string(20'000, 'w')) == std::string(20'000, 'w'));
}

TEST_CASE("foreign text: of a long one the middle is left out, between characters") {
  const std::string million(1'000'000, 'a');
  CHECK(printable(million, 10) == "aaaaa ... (1000000 bytes) ... aaaaa");
  CHECK(printable(million).size() < kLongestLine + 100);
  CHECK(printable(std::string(10, 'a'), 10) == std::string(10, 'a'));
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xe2\x82\xac";
  const std::string cut = printable(euros, 10);
  CHECK(cut == "\xe2\x82\xac ... (300 bytes) ... \xe2\x82\xac");
  CHECK(text("it is ", Shown{"a\nb"}) == "it is 'a b'");
  CHECK(text(Shown{million}).size() < 120);
}
