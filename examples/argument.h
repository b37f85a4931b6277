// A number from the command line of an example.
#pragma once

#include <charconv>
#include <string_view>

#include <isonorm/isonorm.h>

// Throws where the word is anything but a whole number from 0 on.
inline int whole_number(std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  isonorm::check(error == std::errc() && end == word.data() + word.size() && value >= 0, "\"", word,
                 "\" is not a whole number from 0 on");
  return value;
}
