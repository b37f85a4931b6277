#include "training/options/option.h"

#include <algorithm>

namespace isonorm::training {

std::string Limits::expected() const {
  const std::string begin = text(above ? "above " : "from ", least);
  if (std::isinf(most)) return above ? begin : begin + " on";
  return text(begin, above ? ", at most " : below ? " to below " : " to ", most);
}

std::string word_of(std::string_view name) {
  std::string word = text("--", name);
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

}  // namespace isonorm::training
