// Shows text that others wrote (files, their metadata, names) in messages and on terminals. The text can neither
// control a terminal nor fill it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace isonorm {

// Length in bytes (1 to 4) of the well-formed UTF-8 character at the start of `s`; 0 if there is none. Source: RFC
// 3629, section 4.
int utf8_length(std::string_view s);

// The first `most` bytes of `s`, without a UTF-8 character that begins there and is not complete. Bytes that are not
// UTF-8 stay.
std::string_view whole_characters(std::string_view s, size_t most = std::string_view::npos);

// Longest text in bytes that printable() shows without a cut: enough for two paths and a sentence.
inline constexpr size_t kLongestLine = 10'000;

// `s` on one line. A line break becomes a space. Control characters, characters that set the direction of text, and
// bytes that are not UTF-8 are written as "\x1b" or "\u202e". If `s` has more than `most` bytes, its middle is left
// out: "abc ... (1000000 bytes) ... xyz".
std::string printable(std::string_view s, size_t most = kLongestLine);

// Each line of `text` as printable() shows it; no line is shortened.
std::string printable_lines(std::string_view text);

// A part of a message (core/error.h) that comes from a file or a person: printable, in quotes, of at most 80 bytes.
// Messages quote words of the command line with ", others with '.
struct Shown {
  std::string_view text;
  char quote = '\'';
};
void append_text(std::string& s, Shown part);

// A list in a message that shows the first `most` entries: "a, b, and 19980 more".
class ShortList {
 public:
  explicit ShortList(std::string separator = ", ", size_t most = 20) : separator_(std::move(separator)), most_(most) {}

  template <class... Parts> void add(const Parts&... parts) {
    if (++count_ <= most_) shown_ += text(count_ == 1 ? "" : separator_, parts...);
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string str() const {
    return count_ <= most_ ? shown_ : text(shown_, separator_, "and ", count_ - most_, " more");
  }

 private:
  std::string separator_, shown_;
  size_t most_, count_ = 0;
};
inline void append_text(std::string& s, const ShortList& list) { s += list.str(); }

// `word` as a POSIX shell reads it, for commands in messages: in single quotes if it needs quotes, else as it is.
std::string shell_word(const std::string& word);

}  // namespace isonorm
