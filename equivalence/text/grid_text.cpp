#include "equivalence/text/grid_text.h"

#include <algorithm>
#include <cmath>

#include "core/printed.h"
#include "equivalence/judge/result_fields.h"
#include "streams/stream.h"
#include "training/from_outside.h"

namespace isonorm::equivalence {
namespace {

std::string short_number(double value) {
  if (value == 0 || !std::isfinite(value)) return scientific(value);
  return printed("%.0e", value);
}

// Empty for pre_ln.
std::string connections_text(const nn::Arrangement& connection) {
  return connection == nn::kPreLn ? "" : text(" with connections ", training::name_and_origin(connection));
}

std::string setting(const TableResult& r) {
  return text("A ", r.options.model->title, training::listed(*r.options.model) ? "" : training::kFromOutside,
              connections_text(r.options.connection), " of width ", r.model.model.transformer().width, " and ",
              r.model.model.transformer().depth, " blocks", r.options.affine ? " with affine norms" : "",
              r.options.tied ? " with a tied head" : "", r.options.made ? " on images made from the seed" : "", ", ",
              plural(r.options.steps, "step"), ", ", plural(r.options.seeds, "seed"), ", ", name_of(r.model.dtype));
}

// The table with all details of each cell.
reports::TextTable cells_table(const TableResult& r) {
  reports::TextTable table{.heading = text("Every cell: ", title_of(r.options)),
                           .columns = {"variant", "optimizer", "expected", "because", "observed", "loss / control",
                                       "gradient / control", "weights / control", "reason"},
                           .detail = true};
  for (const Cell& cell : r.cells) {
    table.rows.push_back({{text(cell.variant.alias, " ", cell.variant.name)},
                          {title_of(cell.recipe)},
                          {name_of(cell.expected)},
                          {cell.because},
                          {name_of(cell.observed), tone_of(cell.agreement)}});
    const bool trained = cell.observed.has_value();
    for (const Quantity& q : kQuantities)
      table.rows.back().push_back(trained ? reports::beside_cell(cell.deviation.*q.size, cell.control.*q.size)
                                          : reports::TextCell{});
    table.rows.back().push_back({cell.reason});
  }
  return table;
}

// Adds the results of measure_visible().
void add_visible(reports::Document& d, const TableResult& r) {
  const auto add = [&](const char* what, reports::Value value) {
    d.values.push_back({text(title_of(r.options), ": ", what), std::move(value)});
  };
  add("the function sees writers' means", r.visible.writers_mean);
  add("readers' means", r.visible.readers_mean);
  add("gradients have a mean", r.visible.gradient_mean);
  std::string another;
  for (streams::Form form : r.visible.another_function) another += text(another.empty() ? "" : ", ", name_of(form));
  add("forms that are another function", another.empty() ? "none" : another);
}

// Peculiarities of the optimizers, a sentence each (OptimizerRow::note).
std::string notes(const TableResult& r) {
  std::string all;
  for (const Recipe& recipe : r.options.columns)
    if (const std::string note = recipe.optimizer->note(r.model.dtype); !note.empty()) all += text(" ", note, ".");
  return all;
}

// The word on the screen, and the sentence.
std::pair<std::string, std::string> conclusion(const TableResult& r) {
  if (r.interrupted) return {"Interrupted", "nothing is concluded."};
  int equivalent = 0, different = 0, undefined = 0, wrong = 0;
  double largest = 0, smallest = INFINITY;
  const Cell* first = nullptr;
  for (const Cell& cell : r.cells) {
    if (!cell.as_expected() && cell.agreement == r.verdict && wrong++ == 0) first = &cell;
    if (!cell.observed) ++undefined;
    if (cell.observed == Verdict::equivalent) ++equivalent, largest = larger(largest, cell.deviation.loss);
    if (cell.observed == Verdict::different) ++different, smallest = std::min(smallest, cell.deviation.loss);
  }
  const char* word = heading_of(r.verdict);
  if (first)
    return {word, text(wrong, " of ", r.cells.size(), " cells, first ", first->variant.alias, " ", first->variant.name,
                       " with ", title_of(first->recipe), ": expected ", name_of(first->expected), " (", first->because,
                       "), observed ", name_of(first->observed), " (", first->reason, ").")};
  std::string out = text("All ", r.cells.size(), " cells are as theory says: ", equivalent, " equivalent");
  if (equivalent > 0) out += text(" (loss within ", scientific(largest), ")");
  out += text(", ", different, " different");
  if (different > 0) out += text(" (by at least ", scientific(smallest), ")");
  return {word, text(out, ", ", undefined, " undefined.")};
}

}  // namespace

std::string sentence_of(const TableResult& result) { return conclusion(result).second; }

std::string title_of(const TableOptions& o) {
  return text(training::name_and_origin(*o.model), connections_text(o.connection), o.affine ? ", affine norms" : "",
              o.tied ? ", tied head" : "", o.made ? ", made images" : "");
}

std::string cell_text(const Cell& cell) {
  if (!cell.observed) return "n/a";
  const char* sign = cell.observed == Verdict::equivalent ? "= " : cell.observed == Verdict::different ? "! " : "? ";
  return text(sign, short_number(cell.deviation.loss), cell.agreement == Verdict::different ? " ??" : "");
}

reports::TextTable predicates_table(const std::vector<Recipe>& columns, const std::vector<Predicates>& predicates) {
  reports::TextTable table{.heading = "Properties of the updates", .columns = {"U"}};
  for (int p = 0; p < kProperties; ++p) {
    const Property property = static_cast<Property>(p);
    table.columns.push_back(name_of(property));
    table.caption += text(p > 0 ? "; " : "", name_of(property), ": ", formula_of(property));
  }
  table.caption +=
      ". Measured on the optimizer alone: U(G, w) are the weights after four steps from random weights w under random "
      "gradients G without means; the number is the deviation relative to the way of the tensor.";
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<reports::TextCell>& row = table.rows.emplace_back();
    row.push_back({title_of(columns[c])});
    for (const Measured& m : predicates[c].measured)
      row.push_back({text(m.holds ? "yes " : "no ", short_number(m.deviation)), reports::Tone::plain, m.deviation});
  }
  return table;
}

reports::TextTable grid_table(const TableResult& r) {
  reports::TextTable table{
      .heading = title_of(r.options),
      .columns = {""},
      .caption =
          "Largest relative deviation of the loss from Pre-LN's over all steps. =: loss, gradients and weights stay "
          "within 30 times what one-ulp controls reach, plus 64 eps, at every step and for every seed. !: they do not. "
          "?: rounding alone explains as much as a negative control shows, or too little was seen. n/a: raw weights "
          "would be needed and are not there, or the architecture has no such model. A cell that ends with ?? "
          "contradicts the expectation, which follows from the properties of the update."};
  for (const Recipe& c : r.options.columns) table.columns.push_back(title_of(c));
  for (size_t row = 0; row < r.options.rows.size(); ++row) {
    table.rows.push_back({{text(r.options.rows[row].alias, " ", r.options.rows[row].name)}});
    for (size_t c = 0; c < r.options.columns.size(); ++c) {
      const Cell& cell = r.cell(row, c);
      table.rows.back().push_back({cell_text(cell), cell.agreement == Verdict::different   ? reports::Tone::bad
                                                    : cell.observed == Verdict::equivalent ? reports::Tone::good
                                                                                           : reports::Tone::plain});
    }
  }
  return table;
}

reports::TextTable variants_table(const TableResult& r) {
  reports::TextTable table{
      .heading = "The variants",
      .columns = {"", "name", "stores", "maps in the forward", "gradients", "weights after a step"},
      .detail = true};
  for (const Variant& v : r.options.rows)
    table.rows.push_back(
        {{v.alias}, {v.name}, {stores(v)}, {maps_forward(v)}, {treats_gradients(v)}, {treats_weights(v)}});
  return table;
}

reports::Document document_of(std::span<const TableResult> results) {
  const TableResult* worst = &results[0];
  reports::Document d{.title = "When are two trainings the same training?",
                      .about =
                          "Ways to store and update a Transformer's weights, each trained side by side with Pre-LN for "
                          "every optimizer."};
  double seconds = 0;
  for (const TableResult& r : results) {
    if (r.verdict > worst->verdict) worst = &r;
    seconds += r.seconds;
    reports::TextTable depends = predicates_table(r.options.columns, r.predicates);
    depends.detail = true;
    add_visible(d, r);
    const auto [verdict, reason] = conclusion(r);
    if (results.size() > 1)
      d.remarks.push_back(
          text(title_of(r.options), ": ", reports::closing({.title = "", .verdict = verdict, .sentence = reason})));
    d.remarks.push_back(text(setting(r), ".", notes(r)));
    d.tables.insert(d.tables.end(), {grid_table(r), depends, cells_table(r)});
  }
  d.tables.push_back(variants_table(results[0]));
  std::tie(d.verdict, d.sentence) = conclusion(*worst);
  d.tone = tone_of(worst->verdict);
  d.environment = environment_of(results[0].manifest, seconds);
  d.result = table_schema()(results);
  return d;
}

}  // namespace isonorm::equivalence
