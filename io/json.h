// Reads JSON of an expected shape from untrusted text. No document is built: the caller's functions receive the values.
// Nesting is limited to the levels that the caller expects.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace isonorm::io {

// The kinds of value that are accepted: one for each function that is set.
struct JsonValue {
  std::function<void(const std::string&)> string = {};           // as UTF-8, escapes resolved
  std::function<void(int64_t)> integer = {};                     // a whole number in [0, 2^63)
  std::function<void(double)> number = {};                       // any number; integers too, unless `integer` is set
  std::function<void(bool)> flag = {};                           // true or false
  std::function<JsonValue(const std::string& key)> member = {};  // an object: returns what this member may be
  std::function<JsonValue()> element = {};                       // a list: returns what the next element may be
  std::function<void()> end = {};                                // called at the end of an object or list
  std::function<void()> null = {};
};

// Reads a text that holds one `value`. Throws "json: byte 17: expected '{', found a string" on anything else; the byte
// tells how far the text was read. Source: RFC 8259.
void read_json(std::string_view text, JsonValue value);

// Appends `s` to `to` as a JSON string, quoted and escaped. Throws, naming `what`, if `s` is not UTF-8.
void append_json_string(std::string& to, std::string_view s, const char* what);

}  // namespace isonorm::io
