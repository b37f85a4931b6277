// The document of two sets of tensors, and their result for programs.
#include <algorithm>

#include "core/error.h"
#include "equivalence/explain/compare_tensors.h"
#include "equivalence/judge/result_fields.h"

namespace isonorm::equivalence {
namespace {

using Row = TensorsComparison::Row;

std::string sentence_of(const TensorsComparison& r) {
  return text(r.reason, r.likely_cause.empty() ? "" : "; likely cause: ", r.likely_cause);
}

double largest_share(const TensorsComparison& r) {
  double share = 0;
  for (const Row& row : r.rows)
    if (row.tolerance > 0) share = larger(share, row.deviation / row.tolerance);
  return share;
}

const reports::Schema<TensorsComparison>& compare_schema() {
  const auto row =
      reports::Fields<Row>()
          .add("name", &Row::name, "in A")
          .add("partner", &Row::partner, "its name in B")
          .add(
              "shape", [](const Row& r) { return std::vector<int64_t>(r.shape.begin(), r.shape.end()); },
              "sizes of the compared tensors")
          .add(
              "verdict", [](const Row& r) { return name_of(r.verdict()); }, "`equivalent`, `different` or `undecided`")
          .add("identical", &Row::identical, "equal to the last bit")
          .add(
              "deviation", [](const Row& r) { return r.problem.empty() ? std::optional(r.deviation) : std::nullopt; },
              "largest difference relative to the largest entry in A; null: it could not be compared")
          .add("control", &Row::control, "deviation of the farthest control; 0: there are no controls")
          .add("tolerance", &Row::tolerance, "larger deviations differ")
          .add("detectable", &Row::detectable, "the tensor times 1 + this would have been detected; 0: any change")
          .add(
              "problem", [](const Row& r) { return if_any(r.problem); }, "why it could not be compared; else null");
  static const reports::Schema<TensorsComparison> schema{
      "compare", "Two files of tensors, and whether they are the same through a map: `isonorm compare`.",
      reports::Fields<TensorsComparison>()
          .add(
              "verdict", [](const TensorsComparison& r) { return name_of(r.verdict); },
              "`equivalent`, `different` or `undecided`")
          .add(
              "sentence", [](const TensorsComparison& r) { return sentence_of(r); },
              "why, with the numbers that decide")
          .add("identical", &TensorsComparison::identical, "equal to the last bit")
          .add(
              "first_difference",
              [](const TensorsComparison& r) {
                return r.first_difference ? std::optional(r.first_difference->place) : std::nullopt;
              },

              "in the first tensor that differs; null: none, or it could not be compared", difference_fields())
          .add(
              "likely_cause", [](const TensorsComparison& r) { return if_any(r.likely_cause); }, "null: none was found")
          .add("tried", &TensorsComparison::tried, "causes that were tested")
          .add("detectable", &TensorsComparison::detectable,
               "every tensor times 1 + this would have been detected; 0: any change, or something differs")
          .add(
              "last_equivalent", [](const TensorsComparison& r) { return if_any(r.agrees); },
              "the last tensor that agrees before the first difference; null: none")
          .add(
              "furthest", [](const TensorsComparison& r) { return if_any(r.furthest); },
              "the differing tensor that deviates most; null: none")
          .add(
              "order", [](const TensorsComparison& r) { return if_any(r.order); },
              "the order of the tensors; null: A's own")
          .add(
              "compared", [](const TensorsComparison& r) { return std::ssize(r.rows); }, "number of tensors")
          .add(
              "differing",
              [](const TensorsComparison& r) { return std::ranges::count(r.rows, Verdict::different, &Row::verdict); },
              "number of tensors that differ")
          .add("largest_share", largest_share, "largest deviation / tolerance of a tensor")
          .add("tensors", &TensorsComparison::rows, "in the order of the comparison", row)
          .add("only_a", &TensorsComparison::only_a, "tensors without a partner in B")
          .add("only_b", &TensorsComparison::only_b, "tensors without a partner in A")};
  return schema;
}

}  // namespace

reports::Document document_of(const TensorsComparison& r) {
  reports::TextTable tensors{
      .heading = "Tensors",
      .columns = {"in A", "in B", "shape", "deviation", "rounding", "tolerance", "detectable", "problem", "verdict"},
      .detail = true};
  for (const TensorsComparison::Row& row : r.rows) {
    const reports::Tone tone = row.verdict() == Verdict::different ? reports::Tone::bad : reports::Tone::plain;
    tensors.rows.push_back({{row.name},
                            {row.partner},
                            {text(row.shape)},
                            row.problem.empty() ? reports::number_cell(row.deviation) : reports::TextCell{},
                            row.control > 0 ? reports::number_cell(row.control) : reports::TextCell{},
                            reports::number_cell(row.tolerance),
                            reports::number_cell(row.detectable),
                            {row.problem},
                            {name_of(row.verdict()), tone}});
  }
  const auto alone = [&](const std::string& name, const char* where) {
    tensors.rows.push_back(
        {{name}, {}, {}, {}, {}, {}, {}, {where}, {name_of(Verdict::different), reports::Tone::bad}});
  };
  for (const std::string& name : r.only_a) alone(name, "only in A");
  for (const std::string& name : r.only_b) alone(name, "only in B");
  return {.title = "Two sets of tensors",
          .tone = tone_of(r.verdict),
          .verdict = name_of(r.verdict),
          .sentence = sentence_of(r),
          .tables = {tensors},
          .result = compare_schema()(r)};
}

const reports::Description& compare_description() { return compare_schema(); }

}  // namespace isonorm::equivalence
