#include "tests/ptx/text.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace isonorm::ptx {

std::string without_comments(std::string_view text) {
  std::string out(text);
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    const bool line = out.compare(i, 2, "//") == 0, block = out.compare(i, 2, "/*") == 0;
    if (!line && !block) continue;
    const size_t end = std::min(out.size(), out.find(line ? "\n" : "*/", i) + (block ? 2 : 0));
    for (; i < end; ++i)
      if (out[i] != '\n') out[i] = ' ';
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const char* const spaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(spaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (std::string_view("([{").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(c) != std::string_view::npos) --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    if (const auto part = trimmed(text.substr(begin, i - begin)); !part.empty()) parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == '}') && --depth == 0) return i;
  }
  throw Fault(Fault::Kind::refused, "ptx: a bracket is not closed: " + std::string(text.substr(open, 60)));
}

std::optional<uint64_t> number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const char kind = text.size() > 2 && text[0] == '0' ? text[1] : ' ';
  const bool is_float = (kind == 'f' || kind == 'F') && text.size() == 10;
  const bool is_double = (kind == 'd' || kind == 'D') && text.size() == 18;
  const bool is_hexadecimal = is_float || is_double || kind == 'x' || kind == 'X';
  if (is_hexadecimal) text.remove_prefix(2);
  if (text.ends_with('U')) text.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!negative) return value;
  return is_float ? value ^ 1u << 31 : is_double ? value ^ uint64_t { 1 } << 63 : uint64_t{0} - value;
}

Declaration declaration(std::string_view text) {
  Declaration d;
  Type type = Type::none;
  size_t alignment = 0, count = 1;
  const auto parts = words(text);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& word = parts[i];
    if (word == ".align" && i + 1 < parts.size()) {
      alignment = number(parts[++i]).value_or(0);
    } else if (word == ".extern") {
      d.is_extern = true;
    } else if (word[0] == '.') {
      if (const Type t = type_named(std::string_view(word).substr(1)); t != Type::none) type = t;
    } else {
      const size_t open = word.find('[');
      d.name = word.substr(0, open);
      if (open != word.npos)
        count = number(std::string_view(word).substr(open + 1, word.size() - open - 2)).value_or(0);
    }
  }
  if (type == Type::none || d.name.empty())
    throw Fault(Fault::Kind::refused, "ptx: not a declaration: " + std::string(text));
  d.bytes = count * size_of(type);
  d.alignment = alignment ? alignment : size_of(type);
  return d;
}

}  // namespace isonorm::ptx
