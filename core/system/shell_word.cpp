#include "core/system/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace isonorm {

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
