#include "tools/suggestion.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace isonorm::tools {
namespace {

// Number of letters to insert, delete or replace (Levenshtein 1966).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t before = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      before = std::exchange(row[j + 1], std::min({before + (a[i] != b[j]), row[j] + 1, row[j + 1] + 1}));
  }
  return row.back();
}

}  // namespace

std::vector<std::string> words_of(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

std::string meant(const std::string& word, const std::vector<std::string>& names) {
  std::string nearest;
  const size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  size_t least = letters >= 5 ? 3 : letters >= 3 ? 2 : 0;
  for (const std::string& name : names)
    if (const size_t d = distance(word, name); d < least) nearest = name, least = d;
  return nearest.empty() ? "" : text(" (is ", nearest, " meant?)");
}

}  // namespace isonorm::tools
