#include "equivalence/report_page.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "equivalence/report_style.h"
#include "equivalence/summary.h"

namespace isonorm::equivalence {

std::string report_page(const std::string& title, const std::string& body) {
  return text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escaped(title), "</title>\n<style>", kReportStyle, "</style>\n</head>\n<body>\n<main>\n", body,
      "</main>\n</body>\n</html>\n");
}

std::string environment_html(const Manifest& m, double seconds) {
  const auto row = [](const char* name, const std::string& value) {
    return text("<tr><th>", name, "</th><td>", escaped(value), "</td></tr>\n");
  };
  return "<h2>Environment</h2>\n<figure><table class=\"environment\">\n" + row("isonorm", m.version) +
         row("compiler", m.compiler + " " + m.flags) + row("CPU", m.cpu) + row("kernels", m.instructions) +
         row("BLAS", text(m.blas_version, ", core ", m.blas_core, ", ", m.blas_flavour, " flavour")) +
         row("threads", text(m.threads)) + row("dtype", m.dtype) + row("seed", text(m.seed)) +
         row("data, SHA-256", m.data_sha256) + row("time", text(std::round(seconds), " s")) + "</table></figure>\n";
}

std::string legend_item(const std::string& css, const std::string& name) {
  const char* shape = css == "band" ? "M0 0H34V12H0Z" : "M1 6H33";
  // The innermost of the nested lines is pale: it needs the one around it.
  const std::string around = css == "nested isometric" ? text("<path class=\"nested crms\" d=\"", shape, "\"/>") : "";
  return text("<li><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\">", around, "<path class=\"", css, "\" d=\"", shape,
              "\"/></svg>", escaped(name), "</li>\n");
}

void fit_loss_axis(Chart& chart) {
  std::vector<double> all;
  for (const ChartLine& line : chart.lines) {
    all.insert(all.end(), line.values.begin(), line.values.end());
    chart.steps = std::max(chart.steps, static_cast<int>(line.values.size()));
  }
  std::erase_if(all, [](double v) { return !std::isfinite(v); });
  if (all.empty()) return;
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  const double margin = 0.04 * (*high - *low) + 1e-6;
  chart.low = std::max(0.0, *low - margin);
  chart.high = *high + margin;
}

std::string repeat_html(const Manifest& manifest) {
  return text("<h2>Repeat it</h2>\n<pre>", escaped(repeat_command(manifest)), "</pre>\n");
}

}  // namespace isonorm::equivalence
