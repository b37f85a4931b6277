#include "reports/document.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/foreign_text.h"
#include "reports/style.h"
#include "reports/text_layout.h"

namespace isonorm::reports {
namespace {

using json = nlohmann::ordered_json;  // keys keep the order of insertion

// "7", "yes", "-", "1, 2"
std::string shown(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return "-";
        } else if constexpr (std::is_same_v<T, bool>) {
          return v ? "yes" : "no";
        } else if constexpr (std::is_same_v<T, double>) {
          return std::isnan(v) ? "NaN" : printed("%.4g", v);
        } else if constexpr (requires { v.begin(); } && !std::is_same_v<T, std::string>) {
          std::string list;
          for (const auto& entry : v) {
            list += list.empty() ? "" : ", ";
            if constexpr (std::is_same_v<decltype(entry), const Named&>)
              list += text(entry.name, ' ', shown(entry.value));
            else
              list += shown(entry);
          }
          return list;
        } else {
          return text(v);
        }
      },
      value);
}

std::string paragraphs(const std::vector<std::string>& all) {
  std::string out;
  for (const std::string& paragraph : all) out += text("<p>", unbroken(paragraph), "</p>\n");
  return out;
}

std::string with_spaces(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

// The scalars of a result; the scalars of an object have its name before theirs. Without fields that the page shows
// elsewhere.
void add_scalars(std::vector<Named>& scalars, const std::vector<Named>& members, const std::string& before = "") {
  for (const Named& m : members)
    if (const auto* object = std::get_if<std::vector<Named>>(&m.value))
      add_scalars(scalars, *object, text(before, m.name, ' '));
    else if (!std::holds_alternative<std::vector<Value>>(m.value) && m.name != "schema" && m.name != "sentence")
      scalars.push_back({before + m.name, m.value});
}

std::string values_html(const char* heading, const std::vector<Named>& values) {
  if (values.empty()) return "";
  std::string out = text("<h2>", heading, "</h2>\n<figure><table class=\"environment\">\n");
  for (const Named& v : values)
    out += text("<tr><th>", escaped(with_spaces(v.name)), "</th><td>", escaped(shown(v.value)), "</td></tr>\n");
  return out + "</table></figure>\n";
}

// A coloured box: the verdict and the sentence that explains it, with a capital letter.
std::string verdict_html(const Document& d) {
  if (d.verdict.empty()) return d.sentence.empty() ? "" : text("<p><strong>", escaped(d.sentence), "</strong></p>\n");
  std::string begun = d.sentence;
  if (!begun.empty()) begun[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(begun[0])));
  return text("<div class=\"verdict ",
              d.tone == Tone::good  ? "good"
              : d.tone == Tone::bad ? "bad"
                                    : "open",
              "\"><strong>", escaped(d.verdict), "</strong><span>", unbroken(begun), "</span></div>\n");
}

// On a page of at most `width` px, a table of this class becomes a list of cards: the row's name, then every cell under
// the name of its column.
std::string card_style(const std::string& table, int width) {
  std::string out = text("@media screen and (max-width: ", width, "px) {\n");
  for (const char* rule :
       {", TABLE tbody, TABLE td { display: block; text-align: left; }", " thead, TABLE td:empty { display: none; }",
        " tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr)); gap: .3rem .8rem; "
        "align-items: end; padding: .6rem 0; border-bottom: 1px solid var(--line); }",
        " tr td { padding: 0; border: 0; }", " td:first-child, TABLE td.words { grid-column: 1 / -1; }",
        " td:first-child { font-weight: 600; }",
        " td:not(:first-child)::before { content: attr(data-column); display: block; color: var(--soft); font-weight: "
        "400; }"}) {
    std::string line = text("  ", table, rule, "\n");
    for (size_t at; (at = line.find("TABLE")) != std::string::npos;) line.replace(at, 5, table);
    out += line;
  }
  return out + "}\n";
}

// The value as JSON. Adds the places to `non_finite` whose null means a number that is not finite; `place` is the
// value's.
json value_json(const Value& value, const std::string& place, std::vector<std::string>& non_finite) {
  return std::visit(
      [&](const auto& v) -> json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, double>) {
          if (!std::isfinite(v)) non_finite.push_back(place);
          return std::isfinite(v) ? json(v) : json();
        } else if constexpr (std::is_same_v<T, std::vector<Value>>) {
          json list = json::array();
          for (const Value& entry : v) list.push_back(value_json(entry, text(place, '/', list.size()), non_finite));
          return list;
        } else if constexpr (std::is_same_v<T, std::vector<Named>>) {
          json object = json::object();
          for (const Named& m : v) object[m.name] = value_json(m.value, text(place, '/', m.name), non_finite);
          return object;
        } else {
          return v;
        }
      },
      value);
}

// A sentence with a capital letter needs no prefix.
std::string said(const Document& d) {
  if (d.verdict.empty()) return d.sentence;
  const bool alone = !d.sentence.empty() && std::isupper(static_cast<unsigned char>(d.sentence[0]));
  return text(d.verdict, alone ? ". " : ": ", d.sentence);
}

}  // namespace

std::string closing(const Document& d, bool color, size_t width) {
  const std::string whole = wrapped(printable(said(d)), width);
  if (!color || d.tone == Tone::plain) return whole;
  return text(d.tone == Tone::good ? "\x1b[32m" : "\x1b[31;1m", whole.substr(0, d.verdict.size()), "\x1b[0m",
              whole.substr(d.verdict.size()));
}

std::string to_text(const Document& d, bool color, size_t width) {
  std::string out;
  for (const TextTable& t : d.tables)
    if (!t.detail)
      out += text(t.heading, "\n\n", to_text(t, color, width), t.caption.empty() ? "" : "\n",
                  wrapped(printable_lines(t.caption), width), t.caption.empty() ? "\n" : "\n\n");
  for (const Named& v : d.values) out += wrapped(printable(text(v.name, ": ", shown(v.value))), width, 2) + "\n";
  if (!d.values.empty()) out += "\n";
  for (const std::string& remark : d.remarks) out += wrapped(printable(remark), width) + "\n\n";
  const std::string end = closing(d, color, width);
  return out + end + (end.empty() ? "" : "\n");
}

std::string to_html(const Document& d) {
  std::string body = text("<h1>", escaped(d.title), "</h1>\n");
  if (!d.about.empty()) body += text("<p class=\"soft\">", escaped(d.about), "</p>\n");
  body += verdict_html(d);
  for (const Figure& figure : d.figures) body += figure_html(figure);
  for (const TextTable& table : d.tables) body += to_html(table);
  std::vector<Named> values = d.values;
  add_scalars(values, d.result);
  body += values_html("Values", values) + paragraphs(d.remarks);
  if (!d.method.empty()) body += "<h2>How it is decided</h2>\n" + paragraphs(d.method);
  if (!d.environment.command.empty())
    body += text("<h2>Repeat it</h2>\n<pre>", escaped(d.environment.command), "</pre>\n");
  if (std::vector<Named> facts = d.environment.facts; !facts.empty()) {
    facts.push_back({"seconds", std::round(d.environment.seconds)});  // the name that the JSON has
    body += values_html("Environment", facts);
  }
  return text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escaped(d.title), "</title>\n<style>", kChartStyle, kReportStyle, card_style(".cards", 700),
      card_style(".wide", 1000), "</style>\n</head>\n<body>\n<main>\n", body, "</main>\n</body>\n</html>\n");
}

std::string to_json(std::vector<Named> result, const std::string& text, const Environment& e) {
  result.insert(result.end(), {{"text", text},
                               {"command", e.command},
                               {"seconds", e.seconds},
                               {"options", e.options},
                               {"environment", e.facts}});
  std::vector<std::string> non_finite;
  json object = value_json(result, "", non_finite);
  object["non_finite"] = non_finite;
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_json(const Document& d) { return to_json(d.result, to_text(d, false), d.environment); }

}  // namespace isonorm::reports
