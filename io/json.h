// JSON from outside whose shape is known: no value is built that nobody asked for, and nothing nests deeper than what is
// asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace isonorm::io {

// What a value may be: each function that is set takes one kind of it.
struct JsonValue {
  std::function<void(const std::string&)> string = {};           // as UTF-8, escapes resolved
  std::function<void(int64_t)> integer = {};                     // a whole number in [0, 2^63)
  std::function<void(double)> number = {};                       // any number; an integer where that is not set
  std::function<void(bool)> flag = {};                           // true or false
  std::function<JsonValue(const std::string& key)> member = {};  // of an object: what this member may be
  std::function<JsonValue()> element = {};                       // of a list: what the next one may be
  std::function<void()> end = {};                                // of an object or list
  std::function<void()> null = {};
};

// Reads a text that holds `value`. Throws "json: byte 17: expected '{', found a string" where it holds something else;
// the place is how far the text was read. Source: RFC 8259.
void read_json(std::string_view text, JsonValue value);

// `s` in quotes with what JSON requires escaped. Throws where it is not UTF-8, naming `what`.
void append_json_string(std::string& to, std::string_view s, const char* what);

}  // namespace isonorm::io
