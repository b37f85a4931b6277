// TOML files of one level, as options are written in: [sections] of NAME = VALUE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isonorm::tools {

struct TomlEntry {
  std::string section, name;        // section: empty before the first
  std::vector<std::string> values;  // one, or those of an array
};

// All entries of a file, in order. Numbers, dates, true and false are the words that they are; quotes around another word may be
// missing. Throws UsageError naming the line where it is not one of these: a name without a value, dotted names, tables and arrays in
// arrays, texts of several lines, text behind a value. https://toml.io/en/v1.0.0
std::vector<TomlEntry> read_toml(std::string_view file);

// "width = 16\n"; of any bytes. An empty value is true.
std::string toml_line(const std::string& name, const std::string& value);

}  // namespace isonorm::tools
