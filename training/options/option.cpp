#include "training/options/option.h"

#include <algorithm>
#include <charconv>

namespace isonorm::training {

std::string Limits::expected() const {
  const std::string begin = text(above ? "above " : "from ", least);
  if (std::isinf(most)) return above ? begin : begin + " on";
  return text(begin, below ? " to below " : " to ", most);
}

template <class T> bool read_number(const std::string& word, T& value) {
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && stop == word.data() + word.size();
}
template bool read_number(const std::string&, int&);
template bool read_number(const std::string&, int64_t&);
template bool read_number(const std::string&, uint64_t&);
template bool read_number(const std::string&, double&);

std::string word_of(std::string_view name) {
  std::string word = text("--", name);
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

}  // namespace isonorm::training
