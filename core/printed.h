// Numbers as text and text as numbers, by std::to_chars and std::from_chars: the same characters in every locale.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>

namespace isonorm {

// The characters of std::to_chars(value, how...). how: a base for integers; a std::chars_format and a precision, at
// most 17, for floating numbers. Without `how`, a floating number has the fewest digits that read_number() reads as the
// same number.
template <class T, class... How> std::string number_text(T value, How... how) {
  char buffer[400];  // the largest double has 309 digits before the point
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, how...).ptr};
}

// Reads the number that std::from_chars(word, how...) reads. Returns false and leaves `value` unchanged if the whole
// word is not a number or T cannot hold it.
template <class T, class... How> bool read_number(std::string_view word, T& value, How... how) {
  T number{};
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number, how...);
  if (error != std::errc() || stop != end) return false;
  value = number;
  return true;
}

// Reads numbers separated by single spaces. Returns false if `words` is anything else; some values may be set then.
template <class T, class... More> bool read_numbers(std::string_view words, T& value, More&... more) {
  const size_t space = sizeof...(more) > 0 ? words.find(' ') : words.npos;
  if (!read_number(words.substr(0, space), value)) return false;
  if constexpr (sizeof...(more) > 0) return space != words.npos && read_numbers(words.substr(space + 1), more...);
  return true;
}

namespace detail {

// An argument of printed().
struct Printed {
  enum class Kind { whole, natural, real, words } kind;
  int64_t whole = 0;
  uint64_t natural = 0;
  double real = 0;
  std::string_view words = {};

  template <std::signed_integral T> Printed(T value) : kind(Kind::whole), whole(value) {}
  template <std::unsigned_integral T>
  Printed(T value) : kind(Kind::natural), whole(static_cast<int64_t>(value)), natural(value) {}
  template <std::floating_point T> Printed(T value) : kind(Kind::real), real(static_cast<double>(value)) {}
  Printed(char value) : kind(Kind::whole), whole(value) {}
  Printed(const char* value) : kind(Kind::words), words(value) {}
  Printed(std::string_view value) : kind(Kind::words), words(value) {}
  Printed(const std::string& value) : kind(Kind::words), words(value) {}
};

std::string printed(const char* format, std::initializer_list<Printed> parts);

}  // namespace detail

// The text that printf writes in the C locale. Conversions: d u x c s f e g %. Flags: - + 0. Width and precision:
// digits or *. Throws Error for any other conversion, and if a conversion has no argument of its kind.
template <class... A> std::string printed(const char* format, const A&... a) { return detail::printed(format, {a...}); }

// "3.1e-15"; "0" for zero, "NaN".
std::string scientific(double value);

// The number in printf's %g with the fewest digits, at least 6, that read_number() reads back exactly: "0.001",
// "0.12345678901".
std::string shortest(double value);

// "1 seed", "3 seeds".
std::string plural(int64_t n, const char* noun);

}  // namespace isonorm
