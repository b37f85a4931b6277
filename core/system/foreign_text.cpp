#include "core/system/foreign_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/printed.h"

namespace isonorm {

namespace {

// The code point of a well-formed character of n bytes. Source: RFC 3629, section 3.
uint32_t code_point(std::string_view s, int n) {
  if (n == 1) return static_cast<uint8_t>(s[0]);
  uint32_t c = static_cast<uint8_t>(s[0]) & (0x7fu >> n);
  for (int i = 1; i < n; ++i) c = c << 6 | (static_cast<uint8_t>(s[static_cast<size_t>(i)]) & 0x3f);
  return c;
}

// True for control characters (C0, DEL, C1) and for invisible characters that set the direction of text, join it or
// break it (Unicode categories Cf, Zl, Zp).
bool speaks(uint32_t c) {
  constexpr uint32_t hidden[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                                    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                                    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  return std::any_of(std::begin(hidden), std::end(hidden), [c](const auto& r) { return c >= r[0] && c <= r[1]; });
}

std::string escaped(std::string_view s) {
  std::string shown;
  for (size_t i = 0; i < s.size();) {
    const int n = utf8_length(s.substr(i));
    const uint32_t c = n > 0 ? code_point(s.substr(i), n) : static_cast<uint8_t>(s[i]);
    if (c == '\n')
      shown += ' ';
    else if (n == 0 || speaks(c))
      shown += printed(c < 0x100 ? "\\x%02x" : "\\u%04x", c);
    else
      shown += s.substr(i, static_cast<size_t>(n));
    i += static_cast<size_t>(n > 0 ? n : 1);
  }
  return shown;
}

// True if a character begins at s[at].
bool begins(std::string_view s, size_t at) { return (static_cast<uint8_t>(s[at]) & 0xc0) != 0x80; }

}  // namespace

int utf8_length(std::string_view s) {
  if (s.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const int n = lead >= 0xc2 && lead <= 0xdf ? 2 : lead >> 4 == 0xe ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (n == 0 || s.size() < static_cast<size_t>(n)) return 0;
  for (int i = 1; i < n; ++i)
    if (byte(static_cast<size_t>(i)) >> 6 != 2) return 0;
  // The second byte excludes sequences that the first allows: overlong forms, surrogates, code points beyond U+10FFFF.
  const uint8_t second = byte(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return n;
}

std::string_view whole_characters(std::string_view s, size_t most) {
  s = s.substr(0, most);
  for (size_t n = 1; n <= std::min<size_t>(3, s.size()); ++n) {
    const size_t at = s.size() - n;
    if (!begins(s, at)) continue;
    // One of two second bytes follows each lead (RFC 3629, section 4).
    const bool unfinished = std::ranges::any_of(std::array{"\x80\x80\x80", "\xbf\x80\x80"}, [&](const char* rest) {
      return utf8_length(text(s.substr(at), rest)) > static_cast<int>(n);
    });
    return s.substr(0, unfinished ? at : s.size());
  }
  return s;
}

std::string printable(std::string_view s, size_t most) {
  if (s.size() <= most) return escaped(s);
  size_t head = most / 2, tail = s.size() - most / 2;
  while (head > 0 && !begins(s, head)) --head;
  while (tail < s.size() && !begins(s, tail)) ++tail;
  return escaped(s.substr(0, head)) + printed(" ... (%d bytes) ... ", s.size()) + escaped(s.substr(tail));
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    shown += printable(text.substr(at, end - at), text.size());
    if (end < text.size()) shown += '\n';
    at = end + 1;
  }
  return shown;
}

void append_text(std::string& s, Shown part) {
  s += part.quote;
  s += printable(part.text, 80);
  s += part.quote;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./,+=:@").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (char c : word) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  result += '\'';
  return result;
}

}  // namespace isonorm
