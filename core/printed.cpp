#include "core/printed.h"

#include <algorithm>

#include "core/error.h"

namespace isonorm {
namespace {

using detail::Printed;

// One conversion of a format: "%-12s", "%+.2f".
struct Conversion {
  bool left = false, sign = false, zeros = false;
  int width = 0, precision = -1;  // -1: none
  char kind = 0;
};

std::string digits(const Conversion& c, const Printed& p) {
  const int base = c.kind == 'x' ? 16 : 10;
  return p.kind == Printed::Kind::natural ? number_text(p.natural, base) : number_text(p.whole, base);
}

std::string digits(const Conversion& c, double value) {
  const auto format = c.kind == 'f'   ? std::chars_format::fixed
                      : c.kind == 'e' ? std::chars_format::scientific
                                      : std::chars_format::general;
  return number_text(value, format, c.precision < 0 ? 6 : c.precision);
}

std::string converted(const Conversion& c, const Printed& p) {
  const bool whole = p.kind == Printed::Kind::whole || p.kind == Printed::Kind::natural;
  const bool real = p.kind == Printed::Kind::real;
  std::string s;
  switch (c.kind) {
    case 'c':
      check(whole, "printed: %c of no character"), s = static_cast<char>(p.whole);
      break;
    case 's':
      check(!whole && !real, "printed: %s of a number"), s = p.words.substr(0, static_cast<size_t>(c.precision));
      break;
    case 'd':
    case 'u':
    case 'x':
      check(whole, "printed: %", c.kind, " of no whole number"), s = digits(c, p);
      break;
    case 'f':
    case 'e':
    case 'g':
      check(real, "printed: %", c.kind, " of no floating number"), s = digits(c, p.real);
      break;
    default:
      check(false, "printed: there is no conversion %", c.kind);
  }
  if (c.sign && (whole || real) && !s.starts_with('-')) s.insert(s.begin(), '+');
  const size_t width = static_cast<size_t>(c.width), missing = width - std::min(width, s.size());
  if (c.left) return s + std::string(missing, ' ');
  const bool zeros = c.zeros && (whole || (real && std::isfinite(p.real)));
  return s.insert(zeros && (s.starts_with('-') || s.starts_with('+')) ? 1 : 0, missing, zeros ? '0' : ' ');
}

}  // namespace

std::string detail::printed(const char* format, std::initializer_list<Printed> parts) {
  std::string out;
  const Printed* next = parts.begin();
  const auto argument = [&]() -> const Printed& {
    check(next != parts.end(), "printed: \"", format, "\" has ", parts.size(), " arguments, too few");
    return *next++;
  };
  const char* at = format;
  const auto number = [&] {  // digits, or the argument that replaces *
    if (*at == '*') return ++at, static_cast<int>(argument().whole);
    int n = 0;
    for (; *at >= '0' && *at <= '9'; ++at) n = 10 * n + (*at - '0');
    return n;
  };
  for (; *at; ++at) {
    if (*at != '%') {
      out += *at;
      continue;
    }
    if (*++at == '%') {
      out += '%';
      continue;
    }
    Conversion c;
    for (; *at == '-' || *at == '+' || *at == '0'; ++at) (*at == '-' ? c.left : *at == '+' ? c.sign : c.zeros) = true;
    c.width = number();
    if (*at == '.') ++at, c.precision = number();
    c.kind = *at;
    out += converted(c, argument());
    if (!c.kind) break;
  }
  check(next == parts.end(), "printed: \"", format, "\" has ", parts.size(), " arguments, too many");
  return out;
}

std::string scientific(double value) {
  if (std::isnan(value)) return "NaN";
  return value == 0 ? "0" : printed("%.1e", value);
}

std::string shortest(double value) {
  std::string digits;
  double read = 0;
  for (int n = 6; n <= 17; ++n)  // the general format drops trailing zeros
    if (digits = number_text(value, std::chars_format::general, n); read_number(digits, read) && read == value) break;
  return digits;
}

std::string plural(int64_t n, const char* noun) { return text(n, ' ', noun, n == 1 ? "" : "s"); }

}  // namespace isonorm
