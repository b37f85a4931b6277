#include "reports/page.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"

namespace isonorm::reports {

std::string unbroken(const std::string& s) {
  std::string result = escaped(s);
  for (size_t at = 0; (at = result.find("e-", at)) != std::string::npos; at += 2)
    if (at > 0 && std::isdigit(static_cast<unsigned char>(result[at - 1]))) result.replace(at + 1, 1, "\u2011");
  for (size_t at = 0; (at = result.find(" / ", at)) != std::string::npos; at += 3) result.replace(at, 3, " /\u00a0");
  for (size_t at = 0; (at = result.find(" %", at)) != std::string::npos; at += 2) result.replace(at, 2, "\u00a0%");
  return result;
}

std::string breakable(const std::string& html) {
  std::string result;
  for (char c : html) result += c == '_' ? "_<wbr>" : std::string(1, c);
  return result;
}

void fit_axis(Chart& chart) {
  std::vector<double> all;
  for (const ChartLine& line : chart.lines) {
    all.insert(all.end(), line.values.begin(), line.values.end());
    chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  }
  std::erase_if(all, [](double v) { return !std::isfinite(v); });
  if (all.empty()) return;
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  const double margin = 0.04 * (*high > *low ? *high - *low : std::max(*high, 1e-6));
  chart.low = std::max(0.0, *low - margin);
  chart.high = *high + margin;
}

}  // namespace isonorm::reports
