#include "reports/page.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"
#include "reports/chart_style.h"
#include "reports/page_style.h"

namespace isonorm::reports {

namespace {

// On a page of at most `width` px a table of this class is a list of cards: a row's name, and below it every cell under
// the name of its column.
std::string card_style(const std::string& table, int width) {
  std::string out = text("@media screen and (max-width: ", width, "px) {\n");
  for (const char* rule :
       {", TABLE tbody, TABLE td { display: block; text-align: left; }", " thead, TABLE td:empty { display: none; }",
        " tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr)); gap: .3rem .8rem; "
        "align-items: end;"
        " padding: .6rem 0; border-bottom: 1px solid var(--line); }",
        " tr td { padding: 0; border: 0; }", " td:first-child, TABLE td.words { grid-column: 1 / -1; }",
        " td:first-child { font-weight: 600; }",
        " td:not(:first-child)::before { content: attr(data-column); display: block; color: var(--soft);"
        " font-weight: 400; }"}) {
    std::string line = text("  ", table, rule, "\n");
    for (size_t at; (at = line.find("TABLE")) != std::string::npos;) line.replace(at, 5, table);
    out += line;
  }
  return out + "}\n";
}

}  // namespace

std::string report_page(const std::string& title, const std::string& body) {
  return text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escaped(title), "</title>\n<style>", kChartStyle, kReportStyle, card_style(".cards", 700),
      card_style(".wide", 1000), "</style>\n</head>\n<body>\n<main>\n", body, "</main>\n</body>\n</html>\n");
}

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

std::string verdict_box(Tone tone, const std::string& headline, const std::string& sentence) {
  const char* css = tone == Tone::good ? "good" : tone == Tone::bad ? "bad" : "open";
  std::string begun = sentence;
  if (!begun.empty()) begun[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(begun[0])));
  return text("<div class=\"verdict ", css, "\"><strong>", escaped(headline), "</strong><span>", unbroken(begun),
              "</span></div>\n");
}

std::string repeat_html(const std::string& command) {
  return text("<h2>Repeat it</h2>\n<pre>", escaped(command), "</pre>\n");
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
