// The report of an audit.
#include <cmath>

#include "core/printed.h"
#include "equivalence/compare/audit.h"
#include "equivalence/judge/result_fields.h"

namespace isonorm::equivalence {
namespace {

double share(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

reports::TextTable parameter_table(const AuditResult& r) {
  reports::TextTable t{
      .heading = "Directions without gradient",
      .columns = {"parameter", "shape", "numbers", "invisible", "directions", "share", "gradient there", "bound"},
      .caption =
          "Share: directions without gradient of all numbers. Gradient there: its part in those directions relative to "
          "its size, in f64. Bound: the part that rounding explains."};
  for (const AuditResult::Row& row : r.rows) {
    t.rows.push_back({{row.name}, {text(row.shape)}, reports::count_cell(row.numbers), {row.invisible}});
    if (row.directions > 0) {
      const reports::Tone tone = row.gradient <= row.bound ? reports::Tone::plain : reports::Tone::bad;
      t.rows.back().push_back(reports::count_cell(row.directions));
      t.rows.back().push_back(reports::percent_cell(share(row.directions, row.numbers), 1));
      t.rows.back().push_back(reports::number_cell(row.gradient, tone));
      t.rows.back().push_back(reports::number_cell(row.bound));
    }
    t.rows.back().resize(t.columns.size());
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
    t.rows.push_back(
        {{d.norm}, reports::number_cell(d.f64), reports::number_cell(d.f32), reports::number_cell(d.bf16)});
  return t;
}

reports::TextTable error_table(const AuditResult& r) {
  return {.heading = "Readers with zero row sums",
          .columns = {"error of the output", "readers as they are", "with zero row sums"},
          .caption = "Relative to the largest output of Pre-LN in f64.",
          .rows = {{{text("a shift of the stream by ", scientific(r.shift), " of its rms, in f64")},
                    reports::number_cell(r.shift_error),
                    reports::number_cell(r.shift_error_centred)},
                   {{"the whole model in bf16"},
                    reports::number_cell(r.bf16_error),
                    reports::number_cell(r.bf16_error_centred)}}};
}

std::string advice(const AuditResult& r) {
  return text(
      "RMSNorm hands a mean of the stream on to its readers A as A 1. Readers with zero row sums (A P, the same "
      "function in exact arithmetic: StreamOptions::centre_readers) bring the error of the drift measured here from ",
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

// " The examples were the first 1024 of 1048576 positions."; empty if they were all.
std::string shown_text(const AuditResult& r) {
  const training::ModelOptions& model = r.options.model;
  if (model.row().input == training::Input::images || r.shown_context == model.context()) return "";
  return text(" The examples were the first ", r.shown_context, " of ", model.context(), " positions.");
}

const AuditResult::Row* first_unexplained(const AuditResult& r) {
  for (const AuditResult::Row& row : r.rows)
    if (!(row.gradient <= row.bound)) return &row;
  return nullptr;
}

std::string sentence(const AuditResult& r) {
  if (const AuditResult::Row* row = first_unexplained(r))
    return text(row->name, " has a gradient of ", scientific(row->gradient), " in its ", row->invisible,
                ", rounding explains ", scientific(row->bound), ".");
  if (!r.measured) return "Nothing was measured: with these weights no writer of the stream has a gradient.";
  return text("No invisible direction has a gradient: of ", r.numbers(), " numbers ", r.directions(),
              printed(" (%.1f %%)", 100 * share(r.directions(), r.numbers())),
              " are directions without gradient; the stream's mean drifts to ", scientific(r.shift),
              " of its rms in bf16.");
}

const reports::Schema<AuditResult>& audit_schema() {
  using Row = AuditResult::Row;
  using Drift = AuditResult::Drift;
  const auto parameter =
      reports::Fields<Row>()
          .add("name", &Row::name, "of the parameter")
          .add(
              "shape", [](const Row& r) { return std::vector<int64_t>(r.shape.begin(), r.shape.end()); }, "its sizes")
          .add("numbers", &Row::numbers, "how many it has")
          .add(
              "invisible", [](const Row& r) { return if_any(r.invisible); },
              "directions without gradient in words; null: none")
          .add("directions", &Row::directions, "their number")
          .add("gradient", &Row::gradient, "part of its gradient in these directions, relative to the gradient's size")
          .add("bound", &Row::bound, "largest such part that rounding explains");
  const auto drift = reports::Fields<Drift>()
                         .add("norm", &Drift::norm, "the norm that reads the stream")
                         .add("f64", &Drift::f64, "largest |mean| / rms in f64")
                         .add("f32", &Drift::f32, "the same in f32")
                         .add("bf16", &Drift::bf16, "the same in bf16");
  static const reports::Schema<AuditResult> schema{
      "audit", "Directions of the parameters without gradient, as `isonorm audit` measured them.",
      reports::Fields<AuditResult>()
          .add(
              "verdict", [](const AuditResult& r) { return name_of(r.verdict); },
              "`equivalent`: no direction that theory calls invisible has a gradient; else `different`")
          .add(
              "sentence", [](const AuditResult& r) { return sentence(r) + shown_text(r); }, "the numbers that decide")
          .add(
              "first_difference",
              [](const AuditResult& r) -> std::optional<EntryPlace> {
                const Row* row = first_unexplained(r);
                if (!row) return {};
                return EntryPlace{row->name, {}, row->gradient, 0, row->gradient};
              },
              "the first parameter with such a gradient, which is 0 in theory; null: there is none",
              difference_fields())
          .add(
              "likely_cause",
              [](const AuditResult& r) {
                const Row* row = first_unexplained(r);
                return row ? std::optional("the loss sees the " + row->invisible + " of " + row->name) : std::nullopt;
              },
              "a direction that the loss sees against the theory; null: none")
          .add(
              "detectable",
              [](const AuditResult& r) {
                std::optional<double> largest;
                for (const Row& row : r.rows)
                  if (row.directions > 0) largest = std::max(largest.value_or(0), row.bound);
                return largest;
              },
              "a larger part of any gradient in invisible directions is detected; null: there are no such directions")
          .add("numbers", &AuditResult::numbers, "numbers in all parameters")
          .add("directions", &AuditResult::directions, "directions without gradient")
          .add(
              "share", [](const AuditResult& r) { return share(r.directions(), r.numbers()); }, "directions / numbers")
          .add("parameters", &AuditResult::rows, "one for each", parameter)
          .add("drift", &AuditResult::drift, "drift of the stream's mean, as each norm reads it", drift)
          .add("shift", &AuditResult::shift, "largest drift in bf16")
          .add("shift_error", &AuditResult::shift_error, "error of the output in f64 if the stream is shifted by that")
          .add("shift_error_centred", &AuditResult::shift_error_centred, "the same if readers have zero row sums")
          .add("bf16_error", &AuditResult::bf16_error, "error of the output of the whole model in bf16")
          .add("bf16_error_centred", &AuditResult::bf16_error_centred, "the same if readers have zero row sums")};
  return schema;
}

}  // namespace

reports::Document document_of(const AuditResult& r) {
  return {.title = "Directions that the loss cannot see",
          .tone = tone_of(r.verdict),
          .verdict = heading_of(r.verdict),
          .sentence = sentence(r) + shown_text(r),
          .tables = {parameter_table(r), drift_table(r), error_table(r)},
          .figures = {drift_figure(r)},
          .remarks = {advice(r)},
          .environment = environment_of(r.manifest, r.seconds),
          .result = audit_schema()(r)};
}

const reports::Description& audit_description() { return audit_schema(); }

}  // namespace isonorm::equivalence
