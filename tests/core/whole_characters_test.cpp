// Text that is cut ends between characters.
#include <termios.h>

#include "core/system/terminal.h"
#include "tests/support/catch.h"
#include "tests/support/child.h"
#include "tests/support/full_output.h"

using namespace isonorm;

namespace {

// A code point in UTF-8 by the table of RFC 3629, section 3.
std::string utf8(uint32_t c) {
  const auto byte = [](uint32_t b) { return static_cast<char>(b); };
  const auto rest = [&](int shift) { return byte(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), rest(0)};
  if (c < 0x10000) return {byte(0xe0 | c >> 12), rest(6), rest(0)};
  return {byte(0xf0 | c >> 18), rest(12), rest(6), rest(0)};
}

}  // namespace

TEST_CASE("whole characters: no part of a character is left at the end, for every code point") {
  int64_t wrong = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;  // surrogates
    const std::string s = "a" + utf8(c);
    if (whole_characters(s) != s) ++wrong;
    for (size_t n = 1; n < s.size(); ++n)
      if (whole_characters(s, n) != "a" || whole_characters(s.substr(1, n - 1)) != "") ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("whole characters: bytes that are not UTF-8 stay") {
  // Continuations, overlong forms, a surrogate, beyond U+10FFFF, bytes that never occur.
  for (const std::string end : {"\x80", "\xbf\xbf\xbf\xbf", "\xc0", "\xc1\x80", "\xe0\x9f", "\xed\xa0", "\xf0\x8f\x80",
                                "\xf4\x90", "\xf5\x80", "\xff", "\xe6z", ""})
    CHECK(whole_characters("a" + end) == "a" + end);
  CHECK(whole_characters("\u65e5\u672c", 5) == "\u65e5");
  CHECK(whole_characters("abc", 2) == "ab");
}

TEST_CASE("a status line that is wider than the terminal ends between characters") {
  CHECK(test::status_of_child([] {
          setenv("TERM", "xterm", 1);
          test::FullOutput output(true);
          output.drain();
          const winsize size{24, 20, 0, 0};
          if (ioctl(output.writer, TIOCSWINSZ, &size) != 0) _exit(2);
          StatusLine line(fdopen(output.writer, "w"));
          std::string euros;
          for (int i = 0; i < 20; ++i) euros += "\u20ac";
          line.update(euros);  // 19 bytes have place
          const std::string shown = output.drain();
          if (shown.find(euros.substr(0, 18) + "\x1b[K") == shown.npos) _exit(1);
        }) == 0);
}
