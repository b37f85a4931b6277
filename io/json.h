// The little JSON that safetensors headers are made of, read strictly: objects, lists, strings and non-negative
// integers, as a caller asks for them. There is no value type, so nothing can nest deeper than the caller's own code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace isonorm::io {

// Walks over a text. Every function skips white space first and throws "json: byte 17: expected ':', found 'x'" where
// the text differs from what was asked for. The text must live as long as the reader. Source: RFC 8259.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  void expect(char c);  // one of { } [ ] : ,
  bool accept(char c);  // as expect(), but says whether it was there
  void end();           // nothing but white space is left

  // A string as UTF-8, escapes resolved. Refuses control characters, invalid UTF-8 (overlong forms, surrogates, beyond
  // U+10FFFF), single surrogate escapes.
  std::string string();
  // A whole number in [0, 2^63): digits without sign, leading zero, fraction or exponent.
  int64_t integer();

  // Calls member(key) for each member of an object; member() must read the value.
  template <class F> void object(F&& member) {
    expect('{');
    if (accept('}')) return;
    do {
      const std::string key = string();
      expect(':');
      member(key);
    } while (accept(','));
    expect('}');
  }
  // Calls element() for each element of a list; element() must read it.
  template <class F> void list(F&& element) {
    expect('[');
    if (accept(']')) return;
    do element();
    while (accept(','));
    expect(']');
  }

 private:
  void skip_space();
  [[noreturn]] void fail(std::string_view expected) const;
  uint32_t code_unit();  // four hexadecimal digits
  void escape(std::string& to);

  std::string_view text_;
  size_t at_ = 0;
};

// `s` in quotes with what JSON requires escaped. Throws where it is not UTF-8, naming `what`.
void append_json_string(std::string& to, std::string_view s, const char* what);

}  // namespace isonorm::io
