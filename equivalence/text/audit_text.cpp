// An audit in words: tables, report, JSON.
#include <cmath>

#include "core/printed.h"
#include "equivalence/compare/audit.h"
#include "io/json_text.h"
#include "reports/figure.h"
#include "reports/page.h"
#include "reports/text_table.h"
#include "training/records/manifest_html.h"

namespace isonorm::equivalence {
namespace {

std::string percent(int64_t part, int64_t whole) {
  const auto tenths =
      static_cast<int64_t>(std::llround(1000.0 * static_cast<double>(part) / static_cast<double>(whole)));
  return text(tenths / 10, ".", tenths % 10, " %");
}

reports::TextTable parameter_table(const AuditResult& r) {
  reports::TextTable t{.heading = "Directions without gradient",
                       .columns = {"parameter", "shape", "invisible", "share", "gradient there"},
                       .caption =
                           "Share: directions without gradient of all numbers. Gradient there: its part in those "
                           "directions relative to its size, in f64."};
  for (const AuditResult::Row& row : r.rows) {
    std::vector<reports::TextCell> cells = {{row.name}, {text(row.shape)}, {row.invisible}};
    cells.push_back({row.directions > 0 ? percent(row.directions, row.numbers) : ""});
    const reports::Tone tone = row.gradient <= row.bound ? reports::Tone::plain : reports::Tone::bad;
    cells.push_back(row.directions > 0 ? reports::TextCell{scientific(row.gradient), tone, row.gradient}
                                       : reports::TextCell{""});
    t.rows.push_back(std::move(cells));
  }
  return t;
}

reports::TextTable drift_table(const AuditResult& r) {
  reports::TextTable t{.heading = "Drift of the stream's mean",
                       .columns = {"read by", "f64", "f32", "bf16"},
                       .caption =
                           "Largest |mean| / rms over the rows of the rms_norm stream, whose mean is 0 in exact "
                           "arithmetic, as each norm reads it."};
  for (const AuditResult::Drift& d : r.drift)
    t.rows.push_back({{d.norm},
                      {scientific(d.f64), reports::Tone::plain, d.f64},
                      {scientific(d.f32), reports::Tone::plain, d.f32},
                      {scientific(d.bf16), reports::Tone::plain, d.bf16}});
  return t;
}

reports::TextTable error_table(const AuditResult& r) {
  const auto cell = [](double v) { return reports::TextCell{scientific(v), reports::Tone::plain, v}; };
  return {.heading = "What zero-row-sum readers change",
          .columns = {"error of the output", "readers as they are", "with zero row sums"},
          .caption = "Relative to the largest output of Pre-LN in f64.",
          .rows = {{{text("a shift of the stream by ", scientific(r.shift), " of its rms, in f64")},
                    cell(r.shift_error),
                    cell(r.shift_error_centred)},
                   {{"the whole model in bf16"}, cell(r.bf16_error), cell(r.bf16_error_centred)}}};
}

std::string advice(const AuditResult& r) {
  return text(
      "RMSNorm hands a mean of the stream on to its readers A as A 1. Readers with zero row sums (A P, the same "
      "function in exact arithmetic: StreamOptions::centre_readers) bring the error of the drift measured "
      "here from ",
      scientific(r.shift_error), " to ", scientific(r.shift_error_centred),
      ". The whole model in bf16, with the rounding of everything else, is off by ", scientific(r.bf16_error),
      " without them and by ", scientific(r.bf16_error_centred), " with them.");
}

reports::Figure drift_figure(const AuditResult& r) {
  reports::Chart chart{.title = "Drift of the stream's mean, norm by norm",
                       .log_scale = true,
                       .low = 1e-18,
                       .high = 1,
                       .steps = static_cast<int>(r.drift.size()),
                       .axis = "norm",
                       .lines = {{"f64", "other", {}, "f64"}, {"f32", "rms", {}, "f32"}, {"bf16", "crms", {}, "bf16"}}};
  for (const AuditResult::Drift& d : r.drift) {
    chart.lines[0].values.push_back(d.f64);
    chart.lines[1].values.push_back(d.f32);
    chart.lines[2].values.push_back(d.bf16);
  }
  return {.name = "drift",
          .heading = "Drift of the stream's mean",
          .panels = {{.drawing = chart}},
          .caption =
              "Largest |mean| / rms of the rms_norm stream with recentred weights, from the first norm to the last."};
}

}  // namespace

std::string audit_sentence(const AuditResult& r) {
  const AuditResult::Row* bad = nullptr;
  for (const AuditResult::Row& row : r.rows)
    if (!bad && !(row.gradient <= row.bound)) bad = &row;
  if (bad)
    return text("Not blind: ", bad->name, " has a gradient of ", scientific(bad->gradient), " in its ", bad->invisible,
                ", rounding explains ", scientific(bad->bound), ".");
  return text("Of ", r.numbers(), " numbers ", r.directions(), " (", percent(r.directions(), r.numbers()),
              ") are directions without gradient; the stream's mean drifts to ", scientific(r.shift),
              " of its rms in bf16.");
}

std::string audit_text(const AuditResult& r, bool color, size_t width) {
  return to_text(parameter_table(r), color, width) + "\n" + to_text(drift_table(r), color, width) + "\n" +
         to_text(error_table(r), color, width) + "\n" + reports::wrapped(advice(r), width) + "\n";
}

std::string audit_html(const AuditResult& r) {
  std::string body = "<h1>What the loss cannot see</h1>\n";
  body += verdict_box(r.as_expected ? reports::Tone::good : reports::Tone::bad,
                      r.as_expected ? "As theory says" : "Not as theory says", audit_sentence(r));
  body +=
      to_html(parameter_table(r)) + figure_html(drift_figure(r)) + to_html(drift_table(r)) + to_html(error_table(r));
  body += text("<p>", reports::escaped(advice(r)), "</p>\n", environment_html(r.manifest, r.seconds));
  return reports::report_page("isonorm audit", body);
}

std::string audit_json(const AuditResult& r) {
  const auto number = [](double v) { return std::isfinite(v) ? json(v) : json(); };
  json parameters = json::array(), drift = json::array();
  for (const AuditResult::Row& row : r.rows)
    parameters.push_back({{"name", row.name},
                          {"shape", std::vector<int64_t>(row.shape.begin(), row.shape.end())},
                          {"invisible", row.invisible},
                          {"numbers", row.numbers},
                          {"directions", row.directions},
                          {"gradient", number(row.gradient)},
                          {"bound", row.bound}});
  for (const AuditResult::Drift& d : r.drift)
    drift.push_back({{"norm", d.norm}, {"f64", number(d.f64)}, {"f32", number(d.f32)}, {"bf16", number(d.bf16)}});
  const json all = {
      {"as_expected", r.as_expected},
      {"sentence", audit_sentence(r)},
      {"numbers", r.numbers()},
      {"directions", r.directions()},
      {"parameters", parameters},
      {"drift", drift},
      {"shift", number(r.shift)},
      {"shift_error",
       {{"readers_as_they_are", number(r.shift_error)}, {"zero_row_sums", number(r.shift_error_centred)}}},
      {"bf16_error", {{"readers_as_they_are", number(r.bf16_error)}, {"zero_row_sums", number(r.bf16_error_centred)}}},
      {"seconds", r.seconds}};
  return dump(all, 2) + "\n";
}

}  // namespace isonorm::equivalence
