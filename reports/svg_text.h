// Internal: functions that all drawings share: text made from numbers, and paths that stretch with the plot area.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "core/printed.h"
#include "reports/text_layout.h"

namespace isonorm::reports {

template <class... A> void append_printed(std::string& out, const char* format, A... a) {
  out += printed(format, a...);
}

inline constexpr double kAcross = 1000;  // the plot area's width in units of its paths, for any width in px

// Begin and end of the part of a drawing that stretches with its width: paths, but no text or circles. `height` in px.
inline std::string begin_paths(double height) {
  return printed("<svg width=\"100%%\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" preserveAspectRatio=\"none\">\n",
                 height, kAcross, height);
}
inline constexpr const char* kEndPaths = "</svg>\n";

// Approximate width of a text at 12 px.
inline double text_width(std::string_view s) { return 6.6 * static_cast<double>(text_length(s)); }

// "10⁻¹⁵".
inline std::string power_of_ten(int exponent) {
  static const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  std::string result = exponent < 0 ? "10⁻" : "10";
  for (char c : text(std::abs(exponent))) result += kDigits[c - '0'];
  return result;
}

}  // namespace isonorm::reports
