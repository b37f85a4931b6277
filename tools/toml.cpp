#include "tools/toml.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/printed.h"
#include "io/json_text.h"
#include "tools/ending.h"

namespace isonorm::tools {
namespace {

class TomlReader {
 public:
  explicit TomlReader(std::string_view file) : file_(file) {}

  std::vector<TomlEntry> entries() {
    std::vector<TomlEntry> all;
    std::string section;
    for (skip_lines(); at_ < file_.size(); skip_lines()) {
      if (take('[')) {
        section = name();
        expect(']', "the ] of a section");
      } else {
        TomlEntry& entry = all.emplace_back(TomlEntry{section, name(), {}});
        expect('=', "NAME = VALUE");
        entry.values = values();
      }
      skip_spaces();
      if (next() != '#' && next() != '\n') fail("the end of the line");
    }
    return all;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw UsageError(text("line ", 1 + std::ranges::count(file_.substr(0, at_), '\n'), ": expected ", expected));
  }
  char next() const { return at_ < file_.size() ? file_[at_] : '\n'; }
  void skip_spaces() { at_ = std::min(file_.find_first_not_of(" \t\r", at_), file_.size()); }
  // To what is no space, comment or line break.
  void skip_lines() {
    for (skip_spaces(); at_ < file_.size() && (next() == '#' || next() == '\n'); skip_spaces())
      at_ = next() == '#' ? std::min(file_.find('\n', at_), file_.size()) : at_ + 1;
  }
  bool take(char c) {
    skip_spaces();
    const bool there = next() == c && at_ < file_.size();
    at_ += there;
    return there;
  }
  void expect(char c, const char* what) {
    if (!take(c)) fail(what);
  }

  std::string name() {
    skip_spaces();
    if (next() == '"' || next() == '\'') return quoted();
    const size_t end = at_;
    while (std::isalnum(static_cast<unsigned char>(next())) || next() == '-' || next() == '_') ++at_;
    if (at_ == end) fail("NAME = VALUE");
    return std::string(file_.substr(end, at_ - end));
  }
  std::vector<std::string> values() {
    if (!take('[')) return {value()};
    std::vector<std::string> all;
    for (skip_lines(); !take(']'); skip_lines()) {
      all.push_back(value());
      skip_lines();
      if (take(',')) continue;
      expect(']', "the ] of an array");
      break;
    }
    return all;
  }
  std::string value() {
    skip_spaces();
    if (next() == '"' || next() == '\'') return quoted();
    const size_t begin = at_;
    at_ = std::min(file_.find_first_of(" \t\r\n,[]{}#\"'=", at_), file_.size());
    if (at_ == begin) fail("a value");
    return std::string(file_.substr(begin, at_ - begin));
  }
  std::string quoted() {
    const char quote = file_[at_++];
    std::string s;
    for (; next() != quote; ++at_) {
      if (next() == '\n') fail("the second quote of a text");
      if (quote == '\'' || next() != '\\') {
        s += next();
        continue;
      }
      const std::string_view escape = file_.substr(at_, file_.substr(at_).starts_with("\\u") ? 6 : 2);
      const json one = parsed(text('"', escape, '"'));  // JSON's mean the same
      if (!one.is_string()) fail("\\n, \\u00e9 or their like behind a \\");
      s += one.get<std::string>();
      at_ += escape.size() - 1;
    }
    ++at_;
    return s;
  }

  std::string_view file_;
  size_t at_ = 0;
};

bool is_number(const std::string& value) {
  return !value.empty() && value.find_first_not_of("0123456789.e+-") == value.npos;
}

}  // namespace

std::vector<TomlEntry> read_toml(std::string_view file) { return TomlReader(file).entries(); }

std::string toml_line(const std::string& name, const std::string& value) {
  std::string written = value.empty() ? "true" : value;
  if (!value.empty() && !is_number(value)) {
    written = '"';
    for (const char c : value)
      if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f)
        written += printed("\\u%04x", byte);
      else
        written += text(c == '"' || c == '\\' ? "\\" : "", c);
    written += '"';
  }
  return text(name, " = ", written, '\n');
}

}  // namespace isonorm::tools
