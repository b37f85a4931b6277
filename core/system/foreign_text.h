// Text that others wrote (files, their metadata, names): how messages and terminals show it. It can neither speak to a
// terminal nor fill one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isonorm {

// Number of bytes of the well-formed UTF-8 character that `s` begins with (1 to 4), 0 where there is none. Source: RFC
// 3629, section 4.
int utf8_length(std::string_view s);

// Longest line that printable() gives, in bytes: two paths and a sentence.
inline constexpr size_t kLongestLine = 10'000;

// `s` on one line. A line break is a space. Control characters, marks that turn the direction of text and bytes that are
// not UTF-8 are written as "\x1b" or "\u202e". Of more than `most` bytes the middle is left out: "abc ... (1000000 bytes)
// ... xyz".
std::string printable(std::string_view s, size_t most = kLongestLine);

// A part of a message (core/error.h) that a file or person chose: printable, in quotes, of 80 bytes at most.
struct Shown {
  std::string_view text;
};
void append_text(std::string& s, Shown part);

}  // namespace isonorm
