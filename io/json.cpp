#include "io/json.h"

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm::io {
namespace {

void append_utf8(std::string& to, uint32_t c) {
  if (c < 0x80) {
    to += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr uint32_t kLead[4] = {0, 0xc0, 0xe0, 0xf0};
  to += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
}

}  // namespace

void JsonReader::fail(std::string_view expected) const {
  std::string found = "the end";
  if (at_ < text_.size()) {
    const auto c = static_cast<uint8_t>(text_[at_]);
    found = c > 0x20 && c < 0x7f ? text('\'', text_[at_], '\'') : text("byte ", c);
  }
  raise(ErrorKind::invalid, text("json: byte ", at_, ": expected ", expected, ", found ", found), __FILE__, __LINE__);
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

bool JsonReader::accept(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char c) {
  if (!accept(c)) fail(text('\'', c, '\''));
}

void JsonReader::end() {
  skip_space();
  if (at_ != text_.size()) fail("the end");
}

int64_t JsonReader::integer() {
  skip_space();
  const auto digit = [&] { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; };
  if (!digit()) fail("a whole number");
  const bool zero = text_[at_] == '0';
  int64_t value = 0;
  while (digit()) {
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value))
      fail("a number below 2^63");
    ++at_;
    if (zero && digit()) fail("a number without leading zero");
  }
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) fail("a whole number");
  return value;
}

uint32_t JsonReader::code_unit() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("a hexadecimal digit");
    value = value << 4 | static_cast<uint32_t>(digit);
    ++at_;
  }
  return value;
}

void JsonReader::escape(std::string& to) {
  static constexpr std::string_view kEscapes = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  const size_t known = at_ < text_.size() ? kEscapes.find(text_[at_]) : std::string_view::npos;
  if (known != std::string_view::npos) {
    to += kValues[known];
    ++at_;
    return;
  }
  if (at_ == text_.size() || text_[at_] != 'u') fail("an escape");
  ++at_;
  uint32_t c = code_unit();
  if (c >= 0xdc00 && c <= 0xdfff) fail("a first surrogate");
  if (c >= 0xd800 && c <= 0xdbff) {
    if (text_.substr(at_, 2) != "\\u") fail("a second surrogate");
    at_ += 2;
    const uint32_t second = code_unit();
    if (second < 0xdc00 || second > 0xdfff) fail("a second surrogate");
    c = 0x10000 + ((c - 0xd800) << 10) + (second - 0xdc00);
  }
  append_utf8(to, c);
}

std::string JsonReader::string() {
  expect('"');
  std::string s;
  for (;;) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"') {
      ++at_;
      return s;
    }
    if (c == '\\') {
      ++at_;
      escape(s);
      continue;
    }
    const int n = utf8_length(text_.substr(at_));
    if (static_cast<uint8_t>(c) < 0x20) fail("a character of a string");
    if (n == 0) fail("UTF-8");
    s.append(text_, at_, static_cast<size_t>(n));
    at_ += static_cast<size_t>(n);
  }
}

void append_json_string(std::string& to, std::string_view s, const char* what) {
  static constexpr char kHex[] = "0123456789abcdef";
  to += '"';
  for (size_t i = 0; i < s.size();) {
    const int n = utf8_length(s.substr(i));
    check(n > 0, what, ": the name or text ", Shown{s}, " is not UTF-8");
    const char c = s[i];
    if (c == '"' || c == '\\')
      (to += '\\') += c;
    else if (static_cast<uint8_t>(c) < 0x20)
      ((to += "\\u00") += kHex[c >> 4]) += kHex[c & 15];
    else
      to.append(s, i, static_cast<size_t>(n));
    i += static_cast<size_t>(n);
  }
  to += '"';
}

}  // namespace isonorm::io
